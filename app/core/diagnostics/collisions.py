"""How far collision rates of codes are from the min-max kernel, on data."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from app.core.arrays import Matrix
from app.core.diagnostics.agreement_counts import agreement_counts, block_bytes
from app.core.diagnostics.base import Diagnostic, Finding, GivenRows, Seed, Takes
from app.core.diagnostics.collisions_drawing import drawing
from app.core.diagnostics.random_pairs import Whole, row_pairs
from app.core.errors import InvalidInput
from app.core.hashing.encodings import BitsOf, Encoding, encoder
from app.core.hashing.estimates import (
    chances,
    kernel_bias,
    kernel_estimate,
    kernel_interval,
    rbf_bias,
    rbf_estimate,
    rbf_interval,
)
from app.core.kernels.base import Positive
from app.core.maps import FeatureMap, Gives
from app.core.papers import GMM
from app.core.progress import Progress

# Of a pair: indices, kernels, rates and estimates, and these as they are kept.
_BYTES_PER_PAIR = 300
# What an exact kernel may be off by, which matters where an interval ends at it: at 0 and 1.
_ROUNDING = 1e-12


class Exact(TypedDict):
    """The min-max kernel."""

    mean: Annotated[float, Field(description="Over the pairs.")]


class Collided(TypedDict):
    """How often codes that are written in one way agree, and how good an estimate of the kernel is made of that."""

    rate: Annotated[float, Field(description="Share of codes that agree, over all pairs.")]
    mean: Annotated[float | None, Field(description="Of the estimate; null where no pair has one.")]
    bias: Annotated[float | None, Field(description="Of the estimate; null where no pair has one.")]
    rms_error: Annotated[float | None, Field(description="Of the estimate; null where no pair has one.")]
    coverage: Annotated[
        float | None,
        Field(
            description="Share of the pairs whose 95 % interval, that of `/similarity` for vectors, holds the kernel."
        ),
    ]


class RbfEstimate(TypedDict):
    """The RBF kernel, and its estimate from full samples."""

    exact: Annotated[float, Field(description="Mean of the kernel itself.")]
    mean: Annotated[float, Field(description="Of the estimate.")]
    bias: Annotated[float, Field(description="Of the estimate.")]
    rms_error: Annotated[float, Field(description="Of the estimate.")]
    link_bias: Annotated[
        float,
        Field(description="The part of the bias that stays however many hashes there are, as the link is not exact."),
    ]
    coverage: Annotated[float, Field(description="Share of the pairs whose 95 % interval holds the kernel.")]


class CollisionErrors(TypedDict):
    """Collision rates against the exact kernel.

    Pairs that one bit of the index says nothing of, as both rows are of one sign, are left out of the means of `b_bit`.
    """

    pairs: Annotated[int, Field(description="How many were looked at.")]
    exact: Exact
    full: Annotated[Collided, Field(description="Samples (i*, t*).")]
    zero_bit: Annotated[Collided, Field(description="i* alone.")]
    b_bit: Annotated[Collided, Field(description="Codes of b bits; what agrees by chance is taken out.")]
    rbf: Annotated[RbfEstimate | None, Field(description="With gamma.")]


class Collisions(Diagnostic):
    """Collision rates of codes against the exact min-max kernel over pairs of rows: full, 0-bit and b-bit."""

    kind = "collisions"
    takes = Takes.rows
    answer = CollisionErrors
    draws = True
    source = f"{GMM}, section 3, (14), theorem 4"
    choose_when = "Before keeping short codes: where few columns carry the weight, 0-bit rates are far too high."

    pairs: Annotated[int, Field(ge=1, le=1_000_000, description="Most pairs to look at.")] = 100_000
    bits: Annotated[int | None, Field(ge=1, le=16, description="Of the b-bit codes; 8 if not given.")] = None
    bits_of: Annotated[
        Literal["index", "mixed_index", "pair"] | None, Field(description="What those bits are taken from.")
    ] = None
    gamma: Annotated[Positive | None, Field(description="Of the RBF kernel of theorem 4 to estimate too.")] = None
    seed: Seed = 0

    def check(self, feature_map: FeatureMap, rows: GivenRows) -> None:
        """Refuse a map without codes, fewer than 2 rows, and gamma with another power than 1."""
        if Gives.samples not in feature_map.gives:
            kind = feature_map.spec.kernel.kind
            also = "; /similarity tells how often signed codes agree" if Gives.codes in feature_map.gives else ""
            raise InvalidInput(f"kernel {kind} has no samples (i*, t*); collisions is for maps of kernel gmm{also}")
        n = rows["vectors"].shape[0]
        if n < 2:
            raise InvalidInput(f"{n} rows came; pairs need 2", "/vectors")
        if self.gamma is not None and (refusal := feature_map.gamma_refusal()) is not None:
            raise InvalidInput(refusal, "/gamma")

    def memory_bytes(self, feature_map: FeatureMap, rows: GivenRows) -> int:
        """Memory of some samples of all rows, and of what is known of the pairs."""
        n = int(rows["vectors"].shape[0])
        pairs = min(self.pairs, n * (n - 1) // 2)
        return block_bytes(n, feature_map.n_output) + _BYTES_PER_PAIR * pairs

    def run(
        self, feature_map: FeatureMap, rows: GivenRows, progress: Progress | None = None, threads: int = 1
    ) -> Finding[CollisionErrors]:
        """Collision rates of all pairs of different rows, or of `pairs` of them drawn evenly.

        Samples (i*, t*) and i* alone are estimates as they are; what codes of b bits agree by chance is taken out of
        theirs. Means are over pairs at one seed of the map: pairs share rows and hashes, so the mean of the full
        samples is off by more than its pairs' number suggests. InvalidInput for rows without a sample; InvalidOption
        for bits out of range.
        """
        vectors = rows["vectors"]
        n, s = vectors.shape[0], feature_map.n_output
        by = encoder(Encoding.b_bit, self.bits, None if self.bits_of is None else BitsOf(self.bits_of))
        feature_map.check_rows(vectors, "/vectors")
        pairs = row_pairs(n, self.pairs, self.seed)
        found = agreement_counts(feature_map, vectors, pairs, by, self.gamma, progress or Progress())
        exact, odd = found["exact"], found["odd"]
        chance = chances(by, feature_map.spec.input_dim, s, odd[pairs[0]], odd[pairs[1]])
        full, zero_bit, b_bit = (
            kernel_estimate(found[name] / s, s, by_chance).value
            for name, by_chance in (("full", 0.0), ("zero_bit", 0.0), ("b_bit", chance))
        )
        rbf = None if self.gamma is None else rbf_estimate(kernel_estimate(found["full"] / s, s, 0.0), self.gamma).value
        answer = CollisionErrors(
            pairs=len(exact),
            exact=Exact(mean=float(exact.mean())),
            full=_collided(found["full"], s, full, exact),
            zero_bit=_collided(found["zero_bit"], s, zero_bit, exact, true_chance=found["zero_bit_chance"]),
            b_bit=_collided(found["b_bit"], s, b_bit, exact, chance, found["b_bit_chance"]),
            rbf=None
            if rbf is None or self.gamma is None
            else _of_rbf(found["full"], s, exact, found["rbf"], rbf, self.gamma),
        )
        bits = f"{by.bits} bit{'s' * (by.bits > 1)} of {by.bits_of.value}"
        ways = {"full samples (i*, t*)": full, "0-bit, i* alone": zero_bit, bits: b_bit}
        of_rbf = None if rbf is None else (found["rbf"], rbf)
        return Finding(answer, drawing(ways, exact, of_rbf, s))


def _collided(
    counts: Whole, s: int, value: Matrix, exact: Matrix, chance: float | Matrix = 0.0, true_chance: float | Matrix = 0.0
) -> Collided:
    """Figures of the estimates `value` that were made of how many of s codes agree."""
    rate = float((counts / s).mean())
    known = np.isfinite(value)
    if not known.any():
        return Collided(rate=rate, mean=None, bias=None, rms_error=None, coverage=None)
    mean, bias, rms_error = _summary(value[known], exact[known])
    interval = kernel_interval(counts, s, chance, kernel_bias(exact, chance, true_chance))
    return Collided(
        rate=rate, mean=mean, bias=bias, rms_error=rms_error, coverage=_covered(interval[known], exact[known])
    )


def _of_rbf(full: Whole, s: int, exact: Matrix, rbf: Matrix, estimate: Matrix, gamma: float) -> RbfEstimate:
    mean, bias, rms_error = _summary(estimate, rbf)
    link_bias = rbf_bias(exact, 0.0, rbf, gamma)
    interval = rbf_interval(kernel_interval(full, s, 0.0), link_bias, gamma)
    return RbfEstimate(
        exact=float(rbf.mean()),
        mean=mean,
        bias=bias,
        rms_error=rms_error,
        link_bias=float(link_bias.mean()),
        coverage=_covered(interval, rbf),
    )


def _covered(intervals: Matrix, exact: Matrix) -> float:
    """The share of the intervals (n, 2) that hold their kernel, up to its rounding."""
    low, high = intervals[:, 0] - _ROUNDING, intervals[:, 1] + _ROUNDING
    return float(((low <= exact) & (exact <= high)).mean())


def _summary(estimate: Matrix, exact: Matrix) -> tuple[float, float, float]:
    error = estimate - exact
    return float(estimate.mean()), float(error.mean()), float(np.sqrt(np.mean(error**2)))
