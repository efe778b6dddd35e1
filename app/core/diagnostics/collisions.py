"""How far collision rates of codes are from the min-max kernel, on data."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from app.core.arrays import Array, Matrix, Rows, Whole, entries_of_rows, entry_blocks, row_blocks
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
from app.core.model import GMM
from app.core.progress import Pause, Progress, pack_arrays, unpack_arrays

# Per pair: indices, kernels, rates and estimates, and their copies in a state.
_BYTES_PER_PAIR = 300
# Rounding error of an exact kernel, which matters where an interval ends at the kernel: at 0 and 1.
_ROUNDING = 1e-12


@with_config(use_attribute_docstrings=True)
class Exact(TypedDict):
    """The exact min-max kernel."""

    mean: float
    """Mean over the pairs."""


@with_config(use_attribute_docstrings=True)
class Collided(TypedDict):
    """How often codes of one encoding agree, and how well the kernel is estimated from their agreement."""

    rate: float
    """Share of codes that agree, over all pairs."""
    mean: float | None
    """Mean of the estimate; null if no pair has one."""
    bias: float | None
    """Bias of the estimate; null if no pair has one."""
    rms_error: float | None
    """Root mean square error of the estimate; null if no pair has one."""
    coverage: float | None
    """Share of the pairs whose 95 % interval, as `/similarity` returns it for vectors, contains the kernel."""


@with_config(use_attribute_docstrings=True)
class RbfEstimate(TypedDict):
    """The RBF kernel and its estimate from full samples."""

    exact: float
    """Mean of the exact RBF kernel."""
    mean: float
    """Mean of the estimate."""
    bias: float
    """Bias of the estimate."""
    rms_error: float
    """Root mean square error of the estimate."""
    link_bias: float
    """Part of the bias that no number of hashes reduces, as the link between the two kernels is not exact."""
    coverage: float
    """Share of the pairs whose 95 % interval contains the RBF kernel."""


@with_config(use_attribute_docstrings=True)
class CollisionErrors(TypedDict):
    """Collision rates compared with the exact kernel.

    The means of `b_bit` leave out pairs about which one bit of the index says nothing, as both rows have one sign.
    """

    pairs: int
    """Number of pairs compared."""
    exact: Exact
    """Errors against the exact kernel."""
    full: Collided
    """Collisions of full samples (i*, t*)."""
    zero_bit: Collided
    """Collisions of i* alone."""
    b_bit: Collided
    """Collisions of codes of b bits; the estimate is corrected for chance collisions."""
    rbf: RbfEstimate | None
    """Estimates of the RBF kernel; null without gamma."""


class Collisions(Diagnostic):
    """Collision rates of full, 0-bit and b-bit codes, compared with the exact min-max kernel over pairs of rows.

    Choose when:
        Use it before you store short codes: if few columns carry most of the weight, 0-bit collision rates are far too
        high.
    """

    kind = "collisions"
    takes = Takes.rows
    needs = frozenset({Gives.samples})
    answer = CollisionErrors
    draws = True
    source = f"{GMM}, section 3, (14), theorem 4"

    pairs: Annotated[int, Field(ge=1, le=1_000_000)] = 100_000
    """Maximum number of pairs to compare."""
    bits: Annotated[int | None, Field(ge=1, le=16)] = None
    """Number of bits b of the b-bit codes; 8 if not given."""
    bits_of: Literal["index", "mixed_index", "pair"] | None = None
    """Number from which the bits of the b-bit codes are taken."""
    gamma: Positive | None = None
    """γ of the RBF kernel (theorem 4) to estimate as well."""
    seed: Seed = 0

    def check(self, feature_map: FeatureMap, rows: GivenRows) -> None:
        """Refuse a map without samples (i*, t*), fewer than 2 rows, and gamma if the kernel's power is not 1."""
        if Gives.samples not in feature_map.gives:
            kind = feature_map.spec.kernel.kind
            also = "; /similarity tells how often signed codes agree" if Gives.codes in feature_map.gives else ""
            raise InvalidInput(f"kernel {kind} has no samples (i*, t*); collisions is for maps of kernel gmm{also}")
        n = rows["vectors"].shape[0]
        if n < 2:
            raise InvalidInput(f"expected two rows or more, got {n}", "/vectors")
        if self.gamma is not None and (refusal := feature_map.gamma_refusal()) is not None:
            raise InvalidInput(refusal, "/gamma")

    def memory_bytes(self, feature_map: FeatureMap, rows: GivenRows) -> int:
        """Return the memory of a block of samples of all rows, and of the results of the pairs."""
        n = int(rows["vectors"].shape[0])
        return block_bytes(n, feature_map.n_output) + _BYTES_PER_PAIR * min(self.pairs, n * (n - 1) // 2)

    def run(
        self, feature_map: FeatureMap, rows: GivenRows, progress: Progress, threads: int
    ) -> Finding[CollisionErrors]:
        """Measure collision rates of all pairs of different rows, or of `pairs` of them drawn uniformly.

        The rates of samples (i*, t*) and of i* alone are used as estimates directly; rates of codes of b bits are
        corrected for agreement by chance. Means are over pairs at one seed of the map: pairs share rows and hashes, so
        the mean of the full samples is off by more than the number of pairs suggests. Raises InvalidInput for rows
        without a sample, and InvalidOption for bits out of range.
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
    """Return figures of the estimates `value`, which were made from the counts of s codes that agree."""
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
    """Return the share of the intervals (n, 2) that contain their kernel, up to its rounding."""
    low, high = intervals[:, 0] - _ROUNDING, intervals[:, 1] + _ROUNDING
    return float(((low <= exact) & (exact <= high)).mean())


def _summary(estimate: Matrix, exact: Matrix) -> tuple[float, float, float]:
    error = estimate - exact
    return float(estimate.mean()), float(error.mean()), float(np.sqrt(np.mean(error**2)))


# Codes, or entries of rows, that are compared at a time.
_CODES_PER_BLOCK = _ENTRIES_PER_BLOCK = 1 << 20
# Samples held at a time, and the fewest hashes of all rows that are held, even if they have more samples.
_SAMPLES_PER_BLOCK, _LEAST_HASHES = 1 << 22, 64
# Per sample: itself and its code.
_BYTES_PER_SAMPLE = 32
# Both rows of the pairs that are compared at a time.
_BLOCK_BYTES = 64 * _ENTRIES_PER_BLOCK


def block_bytes(n: int, s: int) -> int:
    """Return the memory for the hashes counted at a time, of n rows with s hashes each."""
    return _BYTES_PER_SAMPLE * n * min(s, _hashes_per_block(n)) + _BLOCK_BYTES


def agreement_counts(
    feature_map: FeatureMap, vectors: Rows, pairs: Pairs, by: Encoder, gamma: float | None, progress: Progress
) -> dict[str, Array]:
    """Compute exact kernels and counts of agreeing codes, pair by pair, under the names that `_zeros` explains."""
    n, s, (i, j) = vectors.shape[0], feature_map.n_output, pairs
    found, kept = _zeros(n, len(i), gamma), unpack_arrays(progress.restore())
    if kept.keys() == found.keys():  # an older version kept less
        found = kept
    counts = entries_of_rows(vectors)
    kernels = [*entry_blocks(counts[i] + counts[j], 2 * _ENTRIES_PER_BLOCK)]
    hashes = [*row_blocks(s, _hashes_per_block(n))]
    of = len(kernels) + len(hashes)

    def pause() -> None:
        progress.report(int(found["blocks"]), of)
        progress.checkpoint(partial(pack_arrays, **found))

    for block in kernels[found["blocks"] :]:
        x, y = vectors[i[block]], vectors[j[block]]
        found["exact"][block] = feature_map.exact_pairs(x, y)
        found["zero_bit_chance"][block] = feature_map.chances(x, y, Encoder(Encoding.zero_bit))
        all_kept = by.shows_sign and 2 * feature_map.spec.input_dim <= 1 << by.bits
        found["b_bit_chance"][block] = found["zero_bit_chance"][block] if all_kept else feature_map.chances(x, y, by)
        if gamma is not None:
            found["rbf"][block] = feature_map.rbf_pairs(x, y, gamma)
        found["blocks"] += 1
        pause()
    for block in hashes[found["blocks"] - len(kernels) :]:
        # Counts of a block are added at its end, as a state kept before must not contain a part of them.
        added = _agreements(feature_map.samples(vectors, block, pause), by, block.start, pairs, pause)
        for name, counts in added.items():
            found[name] += counts
        found["blocks"] += 1
        pause()
    return found


def _zeros(n: int, pairs: int, gamma: float | None) -> dict[str, Array]:
    """Return zeros, by name, for the results of n rows and some pairs of them.

    `exact` and, with a gamma, `rbf`: the kernels of each pair. `zero_bit_chance` and `b_bit_chance`: how often i*, and
    codes, of different samples are equal. `full`, `zero_bit` and `b_bit`: for each pair, how many samples, i*, and
    codes agree. `odd`: how many codes of each row are odd. `blocks`: how many blocks are done.
    """
    return {
        "exact": np.zeros(pairs),
        "rbf": np.zeros(0 if gamma is None else pairs),
        **{name: np.zeros(pairs) for name in ("zero_bit_chance", "b_bit_chance")},
        **{name: np.zeros(pairs, np.int64) for name in ("full", "zero_bit", "b_bit")},
        "odd": np.zeros(n, np.int64),
        "blocks": np.array(0),
    }


def _agreements(samples: Samples, by: Encoder, first_hash: int, pairs: Pairs, pause: Pause) -> dict[str, Whole]:
    """Return the counts `full`, `zero_bit`, `b_bit` and `odd` for samples (n, hashes, 2) from `first_hash` on."""
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
    """Return how many hashes of n rows are held at a time; with fewer, entries of rows would be read too often."""
    return max(_LEAST_HASHES, _SAMPLES_PER_BLOCK // n)


def drawing(ways: Mapping[str, Matrix], exact: Matrix, rbf: tuple[Matrix, Matrix] | None, s: int) -> Drawing:
    """Plot a panel for each encoding, a panel of their errors by the kernel, and the estimate of the RBF kernel.

    Args:
        ways: the estimates of the pairs for each encoding; not finite for pairs without an estimate.
        exact: the kernels of the pairs.
        rbf: the RBF kernels of the pairs and their estimates, if they were requested.
        s: number of hashes.
    """
    of = len(ways) + (rbf is not None)
    panels = [_panel(name, exact, value, colour, of) for colour, (name, value) in enumerate(ways.items())]
    panels.append(_errors_panel(ways, exact, s))
    if rbf is not None:
        panels.append(_panel("RBF kernel, of full samples", *rbf, len(ways), of)._replace(x_label="exact RBF kernel"))
    return Drawing([panels[i : i + 2] for i in range(0, len(panels), 2)], row_height=3.6)


def _panel(name: str, exact: Matrix, value: Matrix, colour: int, of: int) -> Panel:
    """Plot estimate against exact kernel for the pairs that have an estimate, beside the diagonal."""
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
    """Plot root mean square errors of each encoding by the kernel g, and √(g(1 − g)/s), the theory for full samples."""
    marks = []
    for colour, (name, value) in enumerate(ways.items()):
        known = np.isfinite(value)
        middles, rms = rms_by_kernel(exact[known], value[known] - exact[known])
        if middles:
            marks.append(Curve(middles, rms, name, colour, marker=colour))
    g = np.linspace(float(exact.min()), float(exact.max()), 40)
    marks.append(Curve(g.tolist(), np.sqrt(g * (1 - g) / s).tolist(), "√(g(1 − g)/s), in theory", None, "dashed"))
    return Panel(marks, x_label="exact min-max kernel g", y_label="root mean square error", title=f"{s:,} hashes")
