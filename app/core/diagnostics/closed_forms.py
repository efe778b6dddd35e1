"""The closed forms of variances, as the diagnostic `variance` tells them.

φ is the kernel divided by its value at 0: the characteristic function of w, E cos w·δ. All are of one pair of rows, δ
apart, for s frequencies or hashes; those of the form complex are E|k̂ − k|², the imaginary part included.
"""

from collections.abc import Mapping
from typing import Annotated, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict

Numbers = NDArray[np.float64]


class ClosedForms(TypedDict):
    """Variances of one pair's estimate; null where none is known, or the estimate has no meaning for the map."""

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
    gcws: Annotated[float | None, Field(description="g(1 − g)/s, g the min-max kernel (GMM paper, (12)).")]
    rbf_from_gcws: Annotated[
        float | None,
        Field(
            description="64γ² e^(−4γz²) g(1 − g)³/(1 + g)⁶/s, z = (1 − g)/(1 + g), to first order (GMM paper, theorem "
            "4, (26))."
        ),
    ]


def closed_forms_of_pairs(by_name: Mapping[str, Numbers], n: int) -> list[ClosedForms]:
    """The closed forms of each of n pairs, from those that a map knows, each (n,)."""

    def of_pair(i: int) -> ClosedForms:
        known = {name: float(variances[i]) for name, variances in by_name.items()}
        return cast(ClosedForms, dict.fromkeys(ClosedForms.__annotations__) | known)

    return [of_pair(i) for i in range(n)]
