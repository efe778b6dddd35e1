"""The closed forms of variances, as the diagnostic `variance` tells them.

φ is the kernel divided by its value at 0: the characteristic function of w, E cos w·δ. All are of one pair of rows, δ
apart, for s frequencies or hashes; those of the form complex are E|k̂ − k|², the imaginary part included.
"""

from collections.abc import Mapping
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


class ClosedForms(TypedDict):
    """Of one pair; None where none is known, or the estimate has no meaning for the map.

    - `monte_carlo`: this map with independent frequencies. Per frequency 1 − φ(δ)² in the form complex,
      ½ + ½φ(2δ) − φ(δ)² in cos_sin, ½ more in phase; normalised, `nrff`.
    - `cv1`, `cv2`: the control variates (moment-matching paper, corollary 1), for normally distributed frequencies;
      with t = δᵀΣδ less by t e^(−t)/s (complex only), and by another ½t² e^(−t)/s.
    - `moment_matching`: that of cv2, to first order in 1/s (corollary 2).
    - `rff`, `nrff`: the form phase, plain and normalised (GMM paper, theorems 2 and 3; the second to first order, here
      for any spectral kernel). nrff is (1 + ½φ(2δ) − (7 − φ(2δ))φ(δ)²/4)/s, the theorem where φ(2δ) = φ(δ)⁴.
    - `gcws`: g(1 − g)/s, g the min-max kernel (GMM paper, (12)).
    - `rbf_from_gcws`: 64γ² e^(−4γz²) g(1 − g)³/(1 + g)⁶/s, z = (1 − g)/(1 + g) (theorem 4, (26); to first order).
    """

    monte_carlo: float | None
    cv1: float | None
    cv2: float | None
    moment_matching: float | None
    rff: float | None
    nrff: float | None
    gcws: float | None
    rbf_from_gcws: float | None


def closed_forms_of_pairs(by_name: Mapping[str, Numbers], n: int) -> list[ClosedForms]:
    """The closed forms of each of n pairs, from those that a map knows, each (n,)."""

    def of(name: str, i: int) -> float | None:
        return float(by_name[name][i]) if name in by_name else None

    return [
        ClosedForms(
            monte_carlo=of("monte_carlo", i),
            cv1=of("cv1", i),
            cv2=of("cv2", i),
            moment_matching=of("moment_matching", i),
            rff=of("rff", i),
            nrff=of("nrff", i),
            gcws=of("gcws", i),
            rbf_from_gcws=of("rbf_from_gcws", i),
        )
        for i in range(n)
    ]
