"""Variances of kernel estimates that are known in closed form.

φ is the kernel divided by its value at 0: the characteristic function of w, E cos w·δ. All are of one pair of rows, δ
apart, for s frequencies or hashes; those of the form complex are E|k̂ − k|², the imaginary part included.
"""

from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from app.core.maps import FourierMap
from app.core.samplers.moment_matching import MomentMatching
from app.core.samplers.monte_carlo import MonteCarlo
from app.core.spec import Form, allocations

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


def per_frequency(form: Form, at: Numbers, at_twice: Numbers) -> Numbers:
    """Variance of one frequency's share in the estimate, from φ(δ) and φ(2δ)."""
    cosine: Numbers = (1 + at_twice) / 2 - at**2
    match form:
        case Form.complex:
            cosine = 1 - at**2
        case Form.phase:
            cosine += 0.5  # of cos(w·(x + y) + 2b), uncorrelated with the rest
        case Form.cos_sin:
            pass
    return np.maximum(cosine, 0)


def fourier_variances(feature_map: FourierMap, lags: Numbers) -> tuple[Numbers, list[ClosedForms]]:
    """Kernel, (n,), and variances of pairs whose prepared rows differ by `lags`, (n, d).

    A kernel of several summands has s shared out among them: variances of independent sums add up.
    """
    spec = feature_map.spec
    drawn = spec.model_copy(update={"sampler": MonteCarlo(kind="monte_carlo"), "s": feature_map.n_frequencies})
    n = len(lags)
    exact = np.zeros(n)
    names = ("monte_carlo", "first", "second", "rff", "nrff")
    sums = {name: np.zeros(n) for name in names}
    every = allocations(drawn)
    all_normal = True
    for (kernel, coordinates, weight), size in every:
        of = lags if coordinates is None else lags[:, coordinates]
        origin = np.zeros((1, of.shape[1]))
        at, at_twice = kernel.gram(of, origin)[:, 0], kernel.gram(2 * of, origin)[:, 0]
        exact += weight * at
        factor = weight**2 / size
        sums["monte_carlo"] += factor * per_frequency(spec.form, at, at_twice)
        sums["rff"] += factor * per_frequency(Form.phase, at, at_twice)
        sums["nrff"] += factor * np.maximum(1 + at_twice / 2 - (7 - at_twice) * at**2 / 4, 0)
        deviations = kernel.normal_deviations(of.shape[1])
        if deviations is None:
            all_normal = False
            continue
        t = np.square(of * deviations).sum(axis=1)
        sums["first"] += factor * t * np.exp(-t) * (spec.form is Form.complex)
        sums["second"] += factor * np.square(t) * np.exp(-t) / 2
    at_zero = sum(share.block.weight for share in every)
    if spec.normalize:
        exact /= at_zero
        for name in ("monte_carlo", "first", "second"):
            sums[name] /= at_zero**2
    # Normalising divides by a constant in the other forms, and by a random number in this one.
    ratio = spec.normalize and spec.form is Form.phase
    normalised = sums["nrff"] if len(every) == 1 else None
    monte_carlo = normalised if ratio else sums["monte_carlo"]
    cv1 = cv2 = None
    if all_normal and not ratio:
        # Rounding: at δ = 0 they are 0.
        cv1 = np.maximum(sums["monte_carlo"] - sums["first"], 0)
        cv2 = np.maximum(cv1 - sums["second"], 0)
    return exact, [
        ClosedForms(
            monte_carlo=_entry(monte_carlo, i),
            cv1=_entry(cv1, i),
            cv2=_entry(cv2, i),
            moment_matching=_entry(cv2, i),
            rff=_entry(sums["rff"], i),
            nrff=_entry(normalised, i),
            gcws=None,
            rbf_from_gcws=None,
        )
        for i in range(n)
    ]


def hashing_variances(kernel: Numbers, s: int, gamma: float | None) -> list[ClosedForms]:
    """Variances of pairs from their min-max kernel g, (n,)."""
    gcws = kernel * (1 - kernel) / s
    rbf = None
    if gamma is not None:
        ratio = (1 - kernel) / (1 + kernel)
        # The slope of the estimate, in an order that overflows for no finite γ, times the standard deviation.
        slope = 8 * ratio / (1 + kernel) ** 2 * (gamma * np.square(np.exp(-gamma * ratio * ratio)))
        rbf = np.square(slope) * gcws
    return [
        ClosedForms(
            monte_carlo=None,
            cv1=None,
            cv2=None,
            moment_matching=None,
            rff=None,
            nrff=None,
            gcws=float(gcws[i]),
            rbf_from_gcws=_entry(rbf, i),
        )
        for i in range(len(kernel))
    ]


def own_closed_form(feature_map: FourierMap) -> Literal["monte_carlo", "moment_matching"] | None:
    """Which of the closed forms is this map's variance over seeds; None where none is known."""
    match feature_map.spec.sampler:
        case MonteCarlo() | MomentMatching(base=MonteCarlo()) as sampler:
            return sampler.kind
    return None


def _entry(values: Numbers | None, i: int) -> float | None:
    return None if values is None else float(values[i])
