"""Mean squared error of a frequency set over the differences of rows.

The measure puts the same mass on each of the n² differences x_i − x_j of n rows, also on those of a row and itself, so
that

    N = (1/n²) Σ_ij |k(x_i − x_j) − k̂(x_i − x_j)|² = ‖K − K̂‖²/n²

in the Frobenius norm: √(N/A) is the relative error of the Gram matrix of the rows. The box discrepancy is that of
differences which fill a box instead. With waves e_l = (e^{iw_l·x_i})_i and Ξ = diag ξ, K̂ = EΞE* in the form `complex`,
and its real part in other forms. With the matrix R = K̂ − K,

    H_lm = |e_l*e_m|²/n²   (complex),   (|e_l*e_m|² + |e_lᵀe_m|²)/(2n²)   (real),   v_l = e_l*Ke_l/n²,
    ∂N/∂w_l = (4ξ_l/n²) Σ_i x_i Im(ē_il (RE)_il).

No difference is ever formed: products of matrices take the place of O(n²) differences.
"""

from collections.abc import Callable

import numpy as np

from app.core.arrays import Matrix, row_blocks
from app.core.building import Use
from app.core.kernels.base import ShiftInvariantKernel
from app.core.progress import Pause, no_pause
from app.core.threads import for_each

# Multiplications that a thread does between two pauses, a tenth of a second or less. Parts, and therefore all bits, do
# not depend on the number of threads; there are at least `_PARTS` if the work is worth it.
_PRODUCTS_PER_PART, _LEAST_PRODUCTS_PER_PART, _PARTS = 1 << 28, 1 << 20, 8
# Cost of the cosine and sine of a phase, in multiplications.
_PRODUCTS_PER_WAVE = 32


Pulls = Callable[[Matrix], tuple[Matrix, Matrix]]
"""Function that returns Σ_l ξ_l H(w_l, x) of frequencies x, (n, d), for a fixed set: (n,), and its gradients by x, (n,
d).
"""


def weights_of(frequencies: Matrix, weights: Matrix | None) -> Matrix:
    """Return the weights of frequencies (s, d), (s,); 1/s each if None is given."""
    s = len(frequencies)
    return np.full(s, 1 / s) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)


class RowDifferences:
    """Mean squared error over the differences of rows; H and v are those of the form of the features.

    Args:
        kernel: any kernel with a method `gram`.
        rows: float64 rows as the kernel compares them, (n, d). K is computed from these.
        use: how features are made: K̂ is computed from the rows rounded to the map's dtype, and is complex in that
            form.
        threads: number of threads; the result does not depend on it.
        pause: called while K is computed.
    """

    def __init__(
        self, kernel: ShiftInvariantKernel, rows: Matrix, use: Use, threads: int = 1, pause: Pause = no_pause
    ) -> None:
        self._is_complex, self._threads = use.is_complex, threads
        self._rows = use.round_entries(rows)
        # Only differences matter, and phases of small numbers keep more digits.
        self._rows -= self._rows.mean(axis=0)
        n, d = rows.shape
        self._gram = np.empty((n, n))

        def work(part: slice) -> None:
            self._gram[part] = kernel.gram(rows[part], rows)

        self._share_out(work, n, n * (d + _PRODUCTS_PER_WAVE), pause)
        self.energy = float(np.square(self._gram).mean())

    def gram(self, frequencies: Matrix, pause: Pause = no_pause) -> Matrix:
        """Return H, (s, s), of frequencies (s, d): positive semidefinite, singular up to rounding if s is large."""
        waves = self._complex_waves(frequencies)
        s, n = len(frequencies), len(self._rows)
        found = np.empty((s, s))

        def work(part: slice) -> None:
            found[part] = np.square(np.abs(waves[:, part].conj().T @ waves))
            if not self._is_complex:
                found[part] += np.square(np.abs(waves[:, part].T @ waves))

        self._share_out(work, s, 8 * n * s, pause)
        found /= n**2 if self._is_complex else 2 * n**2
        return found

    def means(self, frequencies: Matrix, pause: Pause = no_pause) -> Matrix:
        """Return v, (s,), of frequencies (s, d)."""
        n, found = len(self._rows), np.empty(len(frequencies))

        def work(part: slice) -> None:
            waves = self._waves(frequencies[part])
            found[part] = np.einsum("il,il->l", waves, self._gram @ waves).reshape(2, -1).sum(axis=0)

        self._share_out(work, len(frequencies), 2 * n * (n + _PRODUCTS_PER_WAVE), pause)
        found /= n**2
        return found

    def means_and_gradients(self, frequencies: Matrix) -> tuple[Matrix, Matrix]:
        """Return v, (s,), and ∂v_l/∂w_lj, (s, d)."""
        waves = self._complex_waves(frequencies)
        pulled = self._gram @ waves
        pulled /= len(self._rows) ** 2
        return np.einsum("il,il->l", waves.conj(), pulled).real, 2 * self._half_gradient(pulled, waves)

    def evaluate(self, frequencies: Matrix, weights: Matrix | None = None, pause: Pause = no_pause) -> float:
        """Return N of frequencies (s, d) and weights (s,), 1/s if not given."""
        return float(self.row_errors(frequencies, weights, pause).mean())

    def row_errors(self, frequencies: Matrix, weights: Matrix | None = None, pause: Pause = no_pause) -> Matrix:
        """Return the mean squared error of each row with all rows, (n,); N is the mean of these."""
        return self._errors(self._waves(frequencies), weights_of(frequencies, weights), pause)

    def value_and_gradient(
        self, frequencies: Matrix, weights: Matrix | None = None, pause: Pause = no_pause
    ) -> tuple[float, Matrix]:
        """Return N and its gradient by every frequency, (s, d). The gradient by the weights is 2(Hξ − v)."""
        waves, weights = self._waves(frequencies), weights_of(frequencies, weights)
        turned, gradients = np.empty((len(self._rows), len(frequencies))), np.empty(frequencies.shape)
        value = float(self._errors(waves, weights, pause, turned).mean())
        scaled = (4 / len(self._rows) ** 2) * weights[:, None]

        def work(part: slice) -> None:
            gradients[part] = scaled[part] * (turned[:, part].T @ self._rows)

        self._share_out(work, len(frequencies), self._rows.size, pause)
        return value, gradients

    def pulls_of(self, frequencies: Matrix, weights: Matrix) -> Pulls:
        """Return the function that computes the pulls of a fixed set, frequencies (s, d) and weights (s,).

        With it, `means_and_gradients` and `own_terms`, N of the set with one more frequency x of weight ξ is N of the
        set plus 2ξ(Σ_l ξ_l H(w_l, x) − v(x)) + ξ²(1 + o(x)).
        """
        fixed = self._complex_waves(frequencies)
        # In the form real: the waves with both signs, each with half the weight.
        both = [fixed] if self._is_complex else [fixed, fixed.conj()]
        shares = weights[:, None] / (len(both) * len(self._rows) ** 2)

        def pulls(moving: Matrix) -> tuple[Matrix, Matrix]:
            waves = self._complex_waves(moving)
            pulled = np.zeros_like(waves)
            for one in both:
                pulled += one @ (shares * (one.conj().T @ waves))
            return np.einsum("il,il->l", waves.conj(), pulled).real, 2 * self._half_gradient(pulled, waves)

        return pulls

    def own_terms(self, frequencies: Matrix) -> tuple[Matrix, Matrix]:
        """Return o(x) = H(x, x) − 1 of frequencies x, (n, d), as (n,), and its gradients, (n, d).

        It is 0 in the form `complex`; otherwise the mean of cos²(x·u) differs from ½ by half that of cos(2x·u).
        """
        if self._is_complex:
            return np.zeros(len(frequencies)), np.zeros(frequencies.shape)
        squares = self._complex_waves(2 * frequencies)
        means = squares.mean(axis=0)
        return (np.square(np.abs(means)) - 1) / 2, 2 * self._half_gradient(means[None] / len(self._rows), squares)

    def _half_gradient(self, pulled: Matrix, waves: Matrix) -> Matrix:
        """Return −Σ_i x_i Im(p̄_il e_il), (s, d): half the gradient of e*Pe by w_l, with p_l = Pe_l and P Hermitian."""
        return np.asarray(-(pulled.conj() * waves).imag.T @ self._rows, np.float64)

    def _complex_waves(self, frequencies: Matrix) -> Matrix:
        """Return E, (n, s)."""
        waves: Matrix = np.exp(1j * (self._rows @ frequencies.T))
        return waves

    def _waves(self, frequencies: Matrix) -> Matrix:
        """Return the real parts of E beside its imaginary parts, (n, 2s)."""
        s = len(frequencies)
        waves, phases = np.empty((len(self._rows), 2 * s)), self._rows @ frequencies.T
        np.cos(phases, out=waves[:, :s])
        np.sin(phases, out=waves[:, s:])
        return waves

    def _errors(self, waves: Matrix, weights: Matrix, pause: Pause, turned: Matrix | None = None) -> Matrix:
        """Return each row's mean squared error, (n,); write Im(ē_il (RE)_il) to `turned`, (n, s), if it is given."""
        n, s = len(waves), len(weights)
        weighted, sums = waves * np.tile(weights, 2), np.empty(n)
        # Its product with the waves is the imaginary part of K̂.
        crossed = np.concatenate([weighted[:, s:], -weighted[:, :s]], axis=1) if self._is_complex else None

        def work(part: slice) -> None:
            cosines, sines = waves[part, :s], waves[part, s:]
            errors = weighted[part] @ waves.T
            errors -= self._gram[part]
            sums[part] = np.einsum("ij,ij->i", errors, errors)
            if turned is not None:
                pulled = errors @ waves
                turned[part] = cosines * pulled[:, s:]
                turned[part] -= sines * pulled[:, :s]
            if crossed is not None:
                errors = crossed[part] @ waves.T
                sums[part] += np.einsum("ij,ij->i", errors, errors)
                if turned is not None:
                    pulled = errors @ waves
                    turned[part] += cosines * pulled[:, :s]
                    turned[part] += sines * pulled[:, s:]

        self._share_out(work, n, (8 if self._is_complex else 4) * n * s, pause)
        sums /= n
        return sums

    def _share_out(self, work: Callable[[slice], None], n: int, products_per_row: int, pause: Pause) -> None:
        """Call `work` on parts of n rows; their number depends only on the work, so that results are reproducible."""
        most, least = (max(1, size // products_per_row) for size in (_PRODUCTS_PER_PART, _LEAST_PRODUCTS_PER_PART))
        for_each(work, row_blocks(n, min(most, max(least, -(-n // _PARTS)))), self._threads, pause)
