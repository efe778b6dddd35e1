"""How far collision rates of codes are from the min-max kernel, on data."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from app.core.arrays import Array, Matrix, Rows, Whole, row_blocks
from app.core.diagnostics.base import Diagnostic, Finding, GivenRows, Pairs, Seed, Takes, rms_by_kernel, row_pairs
from app.core.drawing import Curve, Density, Drawing, Panel, density
from app.core.errors import InvalidInput
from app.core.hashing.encodings import BitsOf, Encoder, Encoding, Samples, encoder
from app.core.hashing.estimates import (
    chances,
    collisions,
    kernel_bias,
    kernel_estimate,
    kernel_interval,
    odd_codes,
    rbf_bias,
    rbf_estimate,
    rbf_interval,
)
from app.core.kernels.base import Positive
from app.core.maps import FeatureMap, Gives
from app.core.papers import GMM
from app.core.progress import Pause, Progress, pack_arrays, unpack_arrays

# Of a pair: indices, kernels, rates and estimates, and these as they are kept.
_BYTES_PER_PAIR = 300
# What an exact kernel may be off by, which matters where an interval ends at it: at 0 and 1.
_ROUNDING = 1e-12


@with_config(use_attribute_docstrings=True)
class Exact(TypedDict):
    """The min-max kernel."""

    mean: float
    """Over the pairs."""


@with_config(use_attribute_docstrings=True)
class Collided(TypedDict):
    """How often codes that are written in one way agree, and how good an estimate of the kernel is made of that."""

    rate: float
    """Share of codes that agree, over all pairs."""
    mean: float | None
    """Of the estimate; null where no pair has one."""
    bias: float | None
    """Of the estimate; null where no pair has one."""
    rms_error: float | None
    """Of the estimate; null where no pair has one."""
    coverage: float | None
    """Share of the pairs whose 95 % interval, that of `/similarity` for vectors, holds the kernel."""


@with_config(use_attribute_docstrings=True)
class RbfEstimate(TypedDict):
    """The RBF kernel, and its estimate from full samples."""

    exact: float
    """Mean of the kernel itself."""
    mean: float
    """Of the estimate."""
    bias: float
    """Of the estimate."""
    rms_error: float
    """Of the estimate."""
    link_bias: float
    """The part of the bias that stays however many hashes there are, as the link is not exact."""
    coverage: float
    """Share of the pairs whose 95 % interval holds the kernel."""


@with_config(use_attribute_docstrings=True)
class CollisionErrors(TypedDict):
    """Collision rates against the exact kernel.

    Pairs that one bit of the index says nothing of, as both rows are of one sign, are left out of the means of `b_bit`.
    """

    pairs: int
    """How many were looked at."""
    exact: Exact
    full: Collided
    """Samples (i*, t*)."""
    zero_bit: Collided
    """i* alone."""
    b_bit: Collided
    """Codes of b bits; what agrees by chance is taken out."""
    rbf: RbfEstimate | None
    """With gamma."""


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
        return block_bytes(n, feature_map.n_output) + _BYTES_PER_PAIR * min(self.pairs, n * (n - 1) // 2)

    def run(
        self, feature_map: FeatureMap, rows: GivenRows, progress: Progress, threads: int
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
        found = agreement_counts(feature_map, vectors, pairs, by, self.gamma, progress)
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
            full=_collision_figures(found["full"], s, full, exact),
            zero_bit=_collision_figures(found["zero_bit"], s, zero_bit, exact, true_chance=found["zero_bit_chance"]),
            b_bit=_collision_figures(found["b_bit"], s, b_bit, exact, chance, found["b_bit_chance"]),
            rbf=None
            if rbf is None or self.gamma is None
            else _of_rbf(found["full"], s, exact, found["rbf"], rbf, self.gamma),
        )
        bits = f"{by.bits} bit{'s' * (by.bits > 1)} of {by.bits_of.value}"
        ways = {"full samples (i*, t*)": full, "0-bit, i* alone": zero_bit, bits: b_bit}
        return Finding(answer, drawing(ways, exact, None if rbf is None else (found["rbf"], rbf), s))


def _collision_figures(
    counts: Whole, s: int, value: Matrix, exact: Matrix, chance: float | Matrix = 0.0, true_chance: float | Matrix = 0.0
) -> Collided:
    """Figures of the estimates `value` that were made of how many of s codes agree."""
    rate, known = float((counts / s).mean()), np.isfinite(value)
    if not known.any():
        return Collided(rate=rate, mean=None, bias=None, rms_error=None, coverage=None)
    mean, bias, rms_error = _summary(value[known], exact[known])
    interval = kernel_interval(counts, s, chance, kernel_bias(exact, chance, true_chance))
    return Collided(
        rate=rate, mean=mean, bias=bias, rms_error=rms_error, coverage=_coverage(interval[known], exact[known])
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
        coverage=_coverage(interval, rbf),
    )


def _coverage(intervals: Matrix, exact: Matrix) -> float:
    """The share of the intervals (n, 2) that hold their kernel, up to its rounding."""
    low, high = intervals[:, 0] - _ROUNDING, intervals[:, 1] + _ROUNDING
    return float(((low <= exact) & (exact <= high)).mean())


def _summary(estimate: Matrix, exact: Matrix) -> tuple[float, float, float]:
    error = estimate - exact
    return float(estimate.mean()), float(error.mean()), float(np.sqrt(np.mean(error**2)))


# Codes compared at a time, and entries of rows.
_CODES_PER_BLOCK = _ENTRIES_PER_BLOCK = 1 << 20
# Samples held at a time, if that makes no fewer hashes.
_SAMPLES_PER_BLOCK, _LEAST_HASHES = 1 << 22, 64
# A sample and its code.
_BYTES_PER_SAMPLE = 32
# Both rows of as many pairs as are compared at a time.
_BLOCK_BYTES = 64 * _ENTRIES_PER_BLOCK


def block_bytes(n: int, s: int) -> int:
    """Memory for what is counted at a time of n rows with s hashes each."""
    return _BYTES_PER_SAMPLE * n * min(s, _hashes_per_block(n)) + _BLOCK_BYTES


def agreement_counts(
    feature_map: FeatureMap, vectors: Rows, pairs: Pairs, by: Encoder, gamma: float | None, progress: Progress
) -> dict[str, Array]:
    """Exact kernels and counts of agreeing codes, pair by pair, by the names that `_zeros` explains."""
    n, s, (i, j) = vectors.shape[0], feature_map.n_output, pairs
    found, kept = _zeros(n, len(i), gamma), unpack_arrays(progress.restore())
    if kept.keys() == found.keys():  # an older version kept less
        found = kept
    kernels = [*row_blocks(len(i), _ENTRIES_PER_BLOCK * n // max(n, int(vectors.size)))]
    hashes = [*row_blocks(s, _hashes_per_block(n))]
    of = len(kernels) + len(hashes)

    def pause() -> None:
        progress.report(int(found["done"]), of)
        progress.checkpoint(partial(pack_arrays, **found))

    for block in kernels[found["done"] :]:
        x, y = vectors[i[block]], vectors[j[block]]
        found["exact"][block] = feature_map.exact_pairs(x, y)
        found["zero_bit_chance"][block] = feature_map.chances(x, y, Encoder(Encoding.zero_bit))
        all_kept = by.shows_sign and 2 * feature_map.spec.input_dim <= 1 << by.bits
        found["b_bit_chance"][block] = found["zero_bit_chance"][block] if all_kept else feature_map.chances(x, y, by)
        if gamma is not None:
            found["rbf"][block] = feature_map.rbf_pairs(x, y, gamma)
        found["done"] += 1
        pause()
    for block in hashes[found["done"] - len(kernels) :]:
        # What a block adds is added at its end, for what is kept before must not hold a part of it.
        added = _agreements(feature_map.samples(vectors, block, pause), by, block.start, pairs, pause)
        for name, counts in added.items():
            found[name] += counts
        found["done"] += 1
        pause()
    return found


def _zeros(n: int, pairs: int, gamma: float | None) -> dict[str, Array]:
    """Zeros for what is to be computed of n rows and some pairs of them, by name.

    `exact` and, with a gamma, `rbf`: the kernels of each pair. `zero_bit_chance` and `b_bit_chance`: how often i*, and
    codes, of different samples are equal. `full`, `zero_bit` and `b_bit`: how many of its samples, their i*, and its
    codes agree. `odd`: how many codes of each row are odd. `done`: how many blocks are.
    """
    return {
        "exact": np.zeros(pairs),
        "rbf": np.zeros(0 if gamma is None else pairs),
        **{name: np.zeros(pairs) for name in ("zero_bit_chance", "b_bit_chance")},
        **{name: np.zeros(pairs, np.int64) for name in ("full", "zero_bit", "b_bit")},
        "odd": np.zeros(n, np.int64),
        "done": np.array(0),
    }


def _agreements(samples: Samples, by: Encoder, first_hash: int, pairs: Pairs, pause: Pause) -> dict[str, Whole]:
    """The counts `full`, `zero_bit`, `b_bit` and `odd` for samples (n, hashes, 2) from `first_hash` on."""
    i, j = pairs
    codes = by.encode(samples, first_hash)
    written = {"full": samples, "zero_bit": samples[..., 0], "b_bit": codes}
    added = {name: np.empty(len(i), np.int64) for name in written}
    for block in row_blocks(len(i), _CODES_PER_BLOCK // samples.shape[1]):
        for name, of_rows in written.items():
            added[name][block] = collisions(of_rows[i[block]], of_rows[j[block]])
        pause()
    return added | {"odd": odd_codes(by, codes)}


def _hashes_per_block(n: int) -> int:
    """How many hashes of n rows are held at a time; with fewer, the entries of the rows would be read too often."""
    return max(_LEAST_HASHES, _SAMPLES_PER_BLOCK // n)


def drawing(ways: Mapping[str, Matrix], exact: Matrix, rbf: tuple[Matrix, Matrix] | None, s: int) -> Drawing:
    """A panel for each way to write codes; their errors by the kernel; the estimate of the RBF kernel.

    Args:
        ways: the estimates of the pairs for each way, some not finite where there is none.
        exact: the kernels of the pairs.
        rbf: the RBF kernels of the pairs and their estimates, if they were asked for.
        s: how many hashes.
    """
    of = len(ways) + (rbf is not None)
    panels = [_panel(name, exact, value, colour, of) for colour, (name, value) in enumerate(ways.items())]
    panels.append(_errors_panel(ways, exact, s))
    if rbf is not None:
        panels.append(_panel("RBF kernel, of full samples", *rbf, len(ways), of)._replace(x_label="exact RBF kernel"))
    return Drawing([panels[i : i + 2] for i in range(0, len(panels), 2)], row_height=3.6)


def _panel(name: str, exact: Matrix, value: Matrix, colour: int, of: int) -> Panel:
    """Estimate against exact kernel of the pairs that have an estimate, beside the diagonal."""
    known = np.isfinite(value)
    marks: list[Density | Curve] = []
    if known.any():
        x, y = exact[known], value[known]
        marks.append(density(x, y, "pairs", colour, of))
        ends = [float(x.min()), float(x.max())]
        marks.append(Curve(ends, ends, "exact", None, "dashed"))
    bias = f"bias {(value - exact)[known].mean():.2g}" if known.any() else "no estimate"
    return Panel(marks, x_label="exact min-max kernel", y_label="estimate", title=f"{name}: {bias}")


def _errors_panel(ways: Mapping[str, Matrix], exact: Matrix, s: int) -> Panel:
    """Root mean square errors of each way by the kernel g, and √(g(1 − g)/s), which full samples have."""
    marks = []
    for colour, (name, value) in enumerate(ways.items()):
        known = np.isfinite(value)
        middles, rms = rms_by_kernel(exact[known], value[known] - exact[known])
        if middles:
            marks.append(Curve(middles, rms, name, colour, marker=colour))
    g = np.linspace(float(exact.min()), float(exact.max()), 40)
    marks.append(Curve(g.tolist(), np.sqrt(g * (1 - g) / s).tolist(), "√(g(1 − g)/s), in theory", None, "dashed"))
    return Panel(marks, x_label="exact min-max kernel g", y_label="root mean square error", title=f"{s:,} hashes")
