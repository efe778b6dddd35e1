"""What the diagnostic `variance` answers: closed forms and simulated figures of each pair of rows."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict


class ClosedForms(TypedDict):
    """Variances of one pair's estimate; null where none is known, or the estimate has no meaning for the map."""

    # φ is the kernel divided by its value at 0: the characteristic function of w, E cos w·δ, of rows δ apart, for s
    # frequencies or hashes. Those of the form complex are E|k̂ − k|², the imaginary part included.

    monte_carlo: Annotated[
        float | None,
        Field(
            description="This map with independent frequencies. Per frequency 1 − φ(δ)² in the form complex, "
            "½ + ½φ(2δ) − φ(δ)² in cos_sin, ½ more in phase; normalised, `nrff`."
        ),
    ]
    cv1: Annotated[
        float | None,
        Field(
            description="Control variates of the first moment, for normally distributed frequencies (moment-matching "
            "paper, corollary 1): with t = δᵀΣδ, less by t e^(−t)/s, in the form complex only."
        ),
    ]
    cv2: Annotated[float | None, Field(description="Control variates of two moments: less than cv1 by ½t² e^(−t)/s.")]
    moment_matching: Annotated[
        float | None, Field(description="That of cv2, to first order in 1/s (moment-matching paper, corollary 2).")
    ]
    rff: Annotated[float | None, Field(description="The form phase (GMM paper, theorem 2).")]
    nrff: Annotated[
        float | None,
        Field(
            description="The form phase, normalised (GMM paper, theorem 3, for any spectral kernel), to first order: "
            "(1 + ½φ(2δ) − (7 − φ(2δ))φ(δ)²/4)/s, the theorem where φ(2δ) = φ(δ)⁴."
        ),
    ]
    gcws: Annotated[
        float | None, Field(description="g(1 − g)/s, g the min-max kernel (GMM paper, (12)); of dart_minhash too.")
    ]
    rbf_from_gcws: Annotated[
        float | None,
        Field(
            description="64γ² e^(−4γz²) g(1 − g)³/(1 + g)⁶/s, z = (1 − g)/(1 + g), to first order (GMM paper, theorem "
            "4, (26))."
        ),
    ]


class Empirical(TypedDict):
    """Mean and variance of the estimates that maps of other seeds make for one pair."""

    mean: Annotated[float, Field(description="Of the estimates.")]
    variance: Annotated[float, Field(description="E|k̂ − E k̂|².")]
    standard_error: Annotated[float, Field(description="Of the variance.")]


class PairVariance(TypedDict):
    """The kernel of one pair of rows, and the variances of its estimate."""

    exact: Annotated[float, Field(description="The kernel itself.")]
    closed_form: Annotated[
        float | None, Field(description="The one of `closed_forms` that is this map's; null where none is known.")
    ]
    closed_forms: ClosedForms
    empirical: Empirical
    rbf_empirical: Annotated[Empirical | None, Field(description="With gamma: of the RBF kernel's estimate.")]
    rbf_exact: Annotated[
        float | None,
        Field(
            description="With gamma: the RBF kernel itself. The mean of the estimates differs from it by a bias that "
            "no number of hashes makes smaller, which no variance tells."
        ),
    ]


class Variances(TypedDict):
    """Variances of the estimate of k(x_i, y_i) for each pair i."""

    form: Annotated[str | None, Field(description="Whose variance it is; null for hashes.")]
    s: Annotated[int, Field(description="Frequencies, or hashes.")]
    repeats: Annotated[int, Field(description="Maps of other seeds that were simulated with.")]
    own: Annotated[str | None, Field(description="The name of the map's own closed form; null where none is known.")]
    pairs: list[PairVariance]
