"""The diagnostics, by their options: what a request says beside its rows. A new one is a model and its name here."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from app.core.diagnostics.control_variates import ESTIMATORS, Estimator
from app.core.hashing.encodings import BitsOf
from app.core.kernels.base import Positive
from app.core.model import Kind
from app.core.papers import GMM, GQ, MM, QMC

Seed = Annotated[int, Field(ge=0, lt=1 << 64, description="Of everything that is drawn.")]


class Gram(Kind):
    """Errors of the Gram matrix of rows, beside those of maps of as many Monte Carlo frequencies.

    Relative to the exact matrix in the Frobenius and the spectral norm, largest, mean square, and bias.
    """

    source = f"{QMC}, section 6; control variates: {MM}, section 3, (10)"
    choose_when = "First: on your own rows it says what the map is worth, and whether another sampler would be better."

    estimators: Annotated[
        tuple[Annotated[Estimator, Field(strict=False)], ...],
        Field(min_length=1, max_length=3, description=" ".join(f"{key}: {text}" for key, text in ESTIMATORS.items())),
    ] = (Estimator.map,)
    seeds: Annotated[int, Field(ge=0, le=20, description="Number of Monte Carlo maps to compare with.")] = 5
    seed: Seed = 0


class BoxDiscrepancy(Kind):
    """Mean squared integration error over a box of differences: what the sampler makes of the kernel, without rows."""

    source = f"{QMC}, section 4, theorems 7 and 12"
    choose_when = (
        "To compare sets of frequencies for a product kernel on a region rather than on rows. Scales of 1/2 and 1/4 "
        "say more of neighbours than the whole box, whose corners few differences reach."
    )

    box: Annotated[
        Positive | tuple[Positive, ...] | None,
        Field(description="b_j, half the width of the box of differences; of a dataset, the ranges of its columns."),
    ] = None
    box_scales: Annotated[
        tuple[Positive, ...], Field(min_length=1, max_length=20, description="Factors of the box.")
    ] = (1.0, 0.5, 0.25)


class MaxError(Kind):
    """Greatest and RMS error |k(δ) − k̂(δ)| over balls |δ| ≤ M, with the bound of the paper where one holds."""

    source = f"{GQ}, theorems 2 and 3, figure 1"
    choose_when = "For quadrature rules, which are exact to many digits up to some diameter and useless beyond."

    diameters: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=100, description="M, in the rows' unit.")]
    samples: Annotated[int, Field(ge=1, le=1_000_000, description="Points of each ball.")] = 10_000
    seed: Seed = 0


class Variance(Kind):
    """Closed-form variances of the estimate for pairs of rows, beside an empirical one over maps of other seeds."""

    source = f"{MM}, corollary 1; {GMM}, theorems 2 to 4"
    choose_when = "To see which estimator's noise is least at the similarities that matter to you."

    correlations: Annotated[
        tuple[Annotated[float, Field(ge=-1, le=1)], ...] | None,
        Field(min_length=1, max_length=1000, description="Cosines ρ of pairs, instead of x and y."),
    ] = None
    gamma: Annotated[Positive | None, Field(description="Of the RBF kernel estimated from hashes too.")] = None
    repeats: Annotated[int, Field(ge=2, le=10_000, description="Maps of other seeds to simulate with.")] = 200
    seed: Seed = 0


class Collisions(Kind):
    """Collision rates of codes against the exact min-max kernel over pairs of rows: full, 0-bit and b-bit."""

    source = f"{GMM}, section 3, (14), theorem 4"
    choose_when = "Before keeping short codes: where few columns carry the weight, 0-bit rates are far too high."

    pairs: Annotated[int, Field(ge=1, le=1_000_000, description="Most pairs to look at.")] = 100_000
    bits: Annotated[int | None, Field(ge=1, le=16, description="Of the b-bit codes; 8 if not given.")] = None
    bits_of: Annotated[
        Literal["index", "mixed_index", "pair"] | None, Field(description="What those bits are taken from.")
    ] = None
    gamma: Annotated[Positive | None, Field(description="Of the RBF kernel of theorem 4 to estimate too.")] = None
    seed: Seed = 0

    @property
    def taken_from(self) -> BitsOf | None:
        """`bits_of` as the encoders know it."""
        return None if self.bits_of is None else BitsOf(self.bits_of)


class DiagnosticKind(StrEnum):
    """The diagnostics by the names they have in addresses."""

    gram = "gram"
    box_discrepancy = "box-discrepancy"
    max_error = "max-error"
    variance = "variance"
    collisions = "collisions"


DIAGNOSTICS: dict[DiagnosticKind, type[Kind]] = {
    DiagnosticKind.gram: Gram,
    DiagnosticKind.box_discrepancy: BoxDiscrepancy,
    DiagnosticKind.max_error: MaxError,
    DiagnosticKind.variance: Variance,
    DiagnosticKind.collisions: Collisions,
}
