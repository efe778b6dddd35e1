"""The base of the objectives of samplers that learn: mean squared errors of frequency sets over differences of rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from app.core.arrays import Matrix
from app.core.progress import Pause, no_pause

Pulls = Callable[[Matrix], tuple[Matrix, Matrix]]
"""Gives Σ_l ξ_l H(w_l, x) of frequencies x, (n, d), for a fixed set: (n,), and its gradients by x, (n, d)."""


def weights_of(frequencies: Matrix, weights: Matrix | None) -> Matrix:
    """The weights of frequencies (s, d), (s,); 1/s each if None are given."""
    s = len(frequencies)
    return np.full(s, 1 / s) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)


class Discrepancy(ABC):
    """N = A − 2 Σ_l ξ_l v_l + Σ_{l,m} ξ_l ξ_m H_lm of frequencies w_l with weights ξ_l, for one kernel.

    N is the mean of |k(u) − k̂(u)|² over the differences u of a measure, A that of k(u)²; v_l is the mean of the product
    of k with wave l, and H_lm that of the product of waves l and m.

    What takes long has an argument `pause`: it is called between steps of at most a quarter of a second.
    """

    energy: float
    """A."""

    @abstractmethod
    def gram(self, frequencies: Matrix, pause: Pause = no_pause) -> Matrix:
        """H, (s, s), of frequencies (s, d): positive semidefinite, and singular to rounding where points are many."""

    @abstractmethod
    def means(self, frequencies: Matrix, pause: Pause = no_pause) -> Matrix:
        """v, (s,), of frequencies (s, d)."""

    @abstractmethod
    def means_and_gradients(self, frequencies: Matrix) -> tuple[Matrix, Matrix]:
        """v, (s,), and ∂v_l/∂w_lj, (s, d)."""

    @abstractmethod
    def normalized(self, frequencies: Matrix, weights: Matrix | None = None, pause: Pause = no_pause) -> float:
        """N of frequencies (s, d) and weights (s,), 1/s if not given."""

    @abstractmethod
    def value_and_gradient(
        self, frequencies: Matrix, weights: Matrix | None = None, pause: Pause = no_pause
    ) -> tuple[float, Matrix]:
        """N, and its gradient by every frequency, (s, d). That by the weights is 2(Hξ − v)."""

    @abstractmethod
    def pulls_of(self, frequencies: Matrix, weights: Matrix) -> Pulls:
        """The function that gives the pulls of a fixed set, frequencies (s, d) and weights (s,).

        With it, `means_and_gradients` and `own_terms`, N of the set with one more frequency x of weight ξ is N of the
        set plus 2ξ(Σ_l ξ_l H(w_l, x) − v(x)) + ξ²(1 + o(x)).
        """

    @abstractmethod
    def own_terms(self, frequencies: Matrix) -> tuple[Matrix, Matrix]:
        """o(x) = H(x, x) − 1 of frequencies x, (n, d): (n,), and its gradients, (n, d)."""
