"""Sampling of frequencies, and projections, which compute phases of rows: by a dense matrix, or by random signs.

One sampler draws the frequencies of all summands of a kernel. `FourierMap` draws the offsets.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from app.core.arrays import Array, Floats, Matrix, Rows, made_dense, row_blocks
from app.core.building import Building, Use
from app.core.errors import InvalidInput
from app.core.hadamard import (
    NOTHING_KEPT,
    ROUNDS,
    Bits,
    frequencies_of,
    gain,
    padded_size,
    rotate,
    tile_width,
    tiles_of,
)
from app.core.kernels.base import Block, ShiftInvariantKernel, SpectralKernel
from app.core.maps.fourier.forms import FORMS
from app.core.maps.terms import Arrays, BaseSpec, Dtype, FrozenArray
from app.core.panels import Panels
from app.core.progress import Pause, begin_anew, no_pause
from app.core.samplers.base import FrequencySampler, FrequencySet, SizeAdvice
from app.core.samplers.learning import LearningFields
from app.core.samplers.structured_orthogonal import StructuredOrthogonal, with_lengths
from app.core.samplers.uploaded import Uploaded


def spectral(spec: BaseSpec) -> tuple[ShiftInvariantKernel, FrequencySampler]:
    """Return the kernel and the sampler of a spec with frequencies; InvalidInput if the kernel has no frequencies."""
    kernel, sampler = spec.kernel, spec.sampler
    if not isinstance(sampler, FrequencySampler):
        raise TypeError(f"sampler {sampler.kind} draws no frequencies")
    if not isinstance(kernel, ShiftInvariantKernel):
        raise InvalidInput(
            f"kernel {kernel.kind} has no frequencies; its sampler is {kernel.served_by}", "/sampler/kind"
        )
    return kernel, sampler


def check_arrays(spec: BaseSpec, arrays: Arrays) -> None:
    """Raise InvalidInput for frequencies outside the range of the dtype, or weights whose sum makes features 0 or ∞."""
    kind = spec.dtype.value
    kernel, sampler = spectral(spec)
    is_uploaded = isinstance(sampler, Uploaded)
    if not np.isfinite(arrays["frequencies"]).all():
        if is_uploaded:
            raise InvalidInput(f"a frequency is outside the range of {kind}", "/sampler/frequencies")
        raise kernel.out_of_range(kind)
    with np.errstate(over="ignore"):  # an infinite sum is refused below
        total = float(np.abs(arrays["weights"]).sum(dtype=np.float64))
    if not 0 < total < float(np.finfo(spec.numpy_dtype).max) / 4:
        if sampler.learns:
            on_box = isinstance(sampler, LearningFields) and not sampler.on_rows
            raise InvalidInput(
                f"the learned weights sum to {total:.3g} in {kind}, the kernel being nearly 0 where fitted: take "
                + ("a smaller box_scale" if on_box else "rows nearer each other, or a wider kernel"),
                "/sampler/box_scale" if on_box else "/sampler/dataset",
            )
        raise InvalidInput(
            f"the weights sum to {total:.3g}, outside the range of {kind}",
            "/sampler/weights" if is_uploaded else "/kernel/weights",
        )


def lost_digits(spec: BaseSpec, largest: Matrix) -> tuple[str, ...]:
    """Return a warning if frequencies lose digits in the dtype; `largest`, (d,), is the largest of each coordinate.

    Numbers below the least normal number have fewer digits, as they are multiples of the least number of all.
    """
    least = float(np.finfo(spec.numpy_dtype).tiny)
    lost = int(((largest > 0) & (largest < least)).sum())
    if not lost:
        return ()
    return (
        f"the frequencies of {lost} of {len(largest)} coordinates are below {least:.1e}, where {spec.dtype.value} has "
        f"fewer digits: {spectral(spec)[0].scale_field} is out of proportion; "
        + ("take dtype float64, or " if spec.dtype is Dtype.float32 else "")
        + "give rows in a larger unit",
    )


ALL_ZERO = "every frequency is 0, so that this map takes the kernel for a constant"
"""Warning for a map whose frequencies are all 0."""


class Drawn(NamedTuple):
    """A set of frequencies as it is frozen, with warnings and figures for the client."""

    arrays: Arrays
    n_frequencies: int
    warnings: tuple[str, ...]
    report: dict[str, float] | None = None
    """See `Built`."""


class Allocation(NamedTuple):
    """A summand of the kernel, and its number of frequencies."""

    block: Block
    size: int


def allocations(spec: BaseSpec) -> list[Allocation]:
    """Return the summands of a spectral kernel with their numbers of frequencies: even shares of s, or a rule's count.

    Raises:
        InvalidInput: there are fewer frequencies than summands.
    """
    kernel, sampler = spectral(spec)
    blocks = kernel.blocks(spec.input_dim)
    each, left = divmod(spec.s or 0, len(blocks))
    found = [
        Allocation(block, sampler.count(spec.s and each + (i < left), block.dim(spec.input_dim)))
        for i, block in enumerate(blocks)
    ]
    if found[-1].size == 0:  # never if a rule dictates the count
        raise InvalidInput(f"s is {spec.s}; each of the {len(blocks)} subsets needs a frequency at least", "/s")
    return found


def check_allocations(spec: BaseSpec) -> None:
    """Check that the sampler serves every summand of the kernel.

    Raises:
        InvalidInput: it does not; the detail names the rule and what would work.
    """
    _, sampler = spectral(spec)
    every = allocations(spec)
    # A sampler treats summands of one size alike, and there may be thousands of summands.
    alike = {(allocation.block.dim(spec.input_dim), allocation.size): allocation for allocation in every}
    if isinstance(sampler, Uploaded) and len(alike) > 1:
        raise InvalidInput(
            f"uploaded takes subsets of one size, got sizes {min(alike)[0]} to {max(alike)[0]}; sampler sobol works",
            "/sampler/kind",
        )
    if (sampler.learns or not sampler.serves_subsets) and every[0].block.coordinates is not None:
        makes = "learns" if sampler.learns else "makes"
        raise InvalidInput(
            f"sampler {sampler.kind} {makes} a set for all coordinates, not for subsets: sampler sobol works",
            "/sampler/kind",
        )
    # The largest summand first: what is enough for it is enough for all.
    for (dim, size), allocation in sorted(alike.items(), reverse=True, key=lambda item: item[0]):
        try:
            sampler.check(allocation.block.kernel, size, dim)
        except InvalidInput as error:
            raise InvalidInput(of_allocation(error.detail, allocation, every, spec), error.pointer) from None


def unequal(spec: BaseSpec) -> str | None:
    """Return what makes weights unequal, the sampler or the kernel, and what helps; None if weights are equal."""
    kernel, sampler = spectral(spec)
    if not sampler.weighs_alike():
        return (
            f"sampler {sampler.kind}, whose frequencies have weights of their own, and codes count each alike: a point "
            "sampler, for instance sobol, gives codes"
        )
    if len({block.weight / size for block, size in allocations(spec)}) > 1:
        return (
            f"kernel {kernel.kind} with subsets that weigh more for each of their frequencies than others, and codes "
            "count each frequency alike: equal weights and s a multiple of the number of subsets give codes"
        )
    return None


def of_allocation(text: str, allocation: Allocation, every: list[Allocation], spec: BaseSpec) -> str:
    """Return a sampler's text about one allocation; if there are several, add which, and what is better for all."""
    if len(every) == 1:
        return str(text)
    s = sum(other.size for other in every)
    if isinstance(text, SizeAdvice):
        alike = sum(other.size == allocation.size for other in every)
        which = (
            f"each of the {alike} subsets gets" if alike == len(every) else f"{alike} of the {len(every)} subsets get"
        )
        return f"{which} {allocation.size} of the s = {s} frequencies: {text.for_each_of(len(every))}"
    gets = f" with {allocation.size} of the s = {s} frequencies" if s == spec.s else ""
    return f"on a subset of {allocation.block.dim(spec.input_dim)} coordinates{gets}: {text}"


def _prepare_build(building: Building, kernel: ShiftInvariantKernel, spec: BaseSpec) -> Building:
    """Return the build context with rows prepared by the kernel, and with the kind of features of the spec."""

    def rows(dataset: str, pointer: str) -> Rows:
        found = building.rows(dataset, pointer)
        if found.shape[1] != spec.input_dim or found.shape[0] < 2:
            raise InvalidInput(
                f"expected 2 rows or more of {spec.input_dim} entries in dataset {dataset!r}, got shape {found.shape}",
                pointer,
            )
        try:
            return kernel.prepare(found)
        except InvalidInput as error:
            raise InvalidInput(f"dataset {dataset!r}: {error.detail}", pointer) from None

    use = Use(spec.numpy_dtype, FORMS[spec.form].is_complex, spec.normalize)
    return building._replace(rows=rows, use=use)


def frequency_set(spec: BaseSpec, rng: np.random.Generator, building: Building) -> FrequencySet:
    """Draw the frequencies of every summand of the kernel; they are 0 on coordinates that the summand ignores."""
    kernel, sampler = spectral(spec)
    sets: list[FrequencySet] = []
    told: dict[tuple[int, int], list[str]] = {}
    every, around = allocations(spec), _prepare_build(building, kernel, spec)
    before = 0
    for number, allocation in enumerate(every):
        block, dim = allocation.block, allocation.block.dim(spec.input_dim)
        # What has been drawn is not kept: an interrupted build starts again.
        if not sampler.learns and sampler.is_long(allocation.size, dim):
            building.progress.before_long_call(begin_anew)
        elif not sampler.learns and sets:
            building.progress.checkpoint(begin_anew)
        try:
            own = sampler.for_summand(number, before) if number else sampler
            drawn = own.learned_set(block.kernel, allocation.size, dim, rng, around)
        except InvalidInput as error:
            raise InvalidInput(of_allocation(error.detail, allocation, every, spec), error.pointer) from None
        before += allocation.size
        # Summands of one size have the same warnings, and there may be thousands of summands.
        if (dim, allocation.size) not in told:
            told[dim, allocation.size] = [of_allocation(warning, allocation, every, spec) for warning in drawn.warnings]
        sets.append(FrequencySet(drawn.frequencies, drawn.weights * block.weight, report=drawn.report))
    frequencies, weights = _together(sets, [one.block.coordinates for one in every], spec.input_dim)
    warnings = [*kernel.warnings()]
    warnings += dict.fromkeys(warning for of_size in told.values() for warning in of_size)
    warnings += sampler.form_warnings(real=not FORMS[spec.form].is_complex)
    # A sampler that keeps fewer than s frequencies has used s nevertheless.
    if spec.s not in (None, len(weights), sum(allocation.size for allocation in every)):
        warnings.append(f"{sampler.kind} dictates {len(weights)} frequencies; s = {spec.s} was not used")
    # Only sets of a single summand are learned.
    return FrequencySet(frequencies, weights, tuple(warnings), sets[0].report)


def _together(
    sets: list[FrequencySet], coordinates: list[tuple[int, ...] | None], input_dim: int
) -> tuple[Matrix, Matrix]:
    """Join the frequencies (n, input_dim) and weights (n,) of all sets; a set is 0 outside its own coordinates."""
    if coordinates[0] is None:  # there is one summand
        return sets[0].frequencies, sets[0].weights
    weights = np.concatenate([one.weights for one in sets])
    frequencies, end = np.zeros((len(weights), input_dim)), 0
    for one, own in zip(sets, coordinates, strict=True):
        start, end = end, end + len(one.weights)
        frequencies[start:end, own] = one.frequencies
    return frequencies, weights


# Entries of the matrix that are summed at a time.
_ENTRIES_PER_BLOCK = 1 << 18
# Memory of one coordinate of a frequency, in the frozen matrix and in the open map together.
_BYTES_PER_COORDINATE = 16


class DenseProjection:
    """Projection to phases w_l·x, where the w_l are frozen as the array `frequencies`, (n_frequencies, d)."""

    is_dense, slices_per_rotation = True, 1

    def __init__(self, spec: BaseSpec, arrays: Arrays) -> None:
        frequencies = arrays["frequencies"]
        self.n_frequencies = len(frequencies)
        self._panels = Panels(frequencies)
        self.most_rows = self._panels.most_rows
        self.bytes, self.frequencies_per_block = self._panels.nbytes, self._panels.step
        with np.errstate(over="ignore"):  # with an infinite norm, only entries of 0 are accepted
            self.largest_norm = max(
                float(np.abs(frequencies[block]).sum(axis=1, dtype=np.float64).max())
                for block in row_blocks(len(frequencies), _ENTRIES_PER_BLOCK // frequencies.shape[1])
            )

    @classmethod
    def frozen(cls, spec: BaseSpec, s: int) -> dict[str, FrozenArray]:
        """Return the shape and dtype of the matrix of frequencies."""
        return {"frequencies": FrozenArray((s, spec.input_dim), spec.numpy_dtype)}

    @classmethod
    def opening_bytes(cls, spec: BaseSpec, s: int) -> int:
        """Return the memory of the matrix in two layouts, in float64."""
        return _BYTES_PER_COORDINATE * spec.input_dim * (s + 1)

    @classmethod
    def draw(cls, spec: BaseSpec, rng: np.random.Generator, building: Building) -> Drawn:
        """Draw frequencies as a matrix, with their weights and, if some weights are negative, the signs of weights.

        Raises:
            InvalidInput: the sampler finds no such set, its frequencies leave the range of the dtype, or its weights
                have both signs and the form is defined for positive weights only.
        """
        found = frequency_set(spec, rng, building)
        with np.errstate(over="ignore"):  # an overflow is refused below
            arrays: Arrays = {
                "frequencies": found.frequencies.astype(spec.numpy_dtype, copy=False),
                "weights": found.weights.astype(spec.numpy_dtype, copy=False),
            }
        check_arrays(spec, arrays)
        largest = np.maximum(found.frequencies.max(axis=0), -found.frequencies.min(axis=0))
        warnings = found.warnings + lost_digits(spec, largest)
        kept = arrays["weights"] != 0
        if not kept.all() and not isinstance(spec.sampler, Uploaded):  # the client has chosen its columns
            arrays, found = {name: array[kept] for name, array in arrays.items()}, found.only(kept)
        if not arrays["frequencies"].any():
            warnings += (ALL_ZERO,)
        if (found.weights < 0).any():
            if FORMS[spec.form].has_offsets or spec.normalize:
                raise InvalidInput(
                    "this rule has negative weights: only forms cos_sin and complex, not normalised, carry a signature",
                    "/normalize" if spec.normalize else "/form",
                )
            arrays["signature"] = np.where(found.weights < 0, -1, 1).astype(np.int8)
            if spec.dtype is Dtype.float32:
                warnings += ("weights of both signs multiply the rounding of float32; take dtype float64 for accuracy",)
        return Drawn(arrays, len(found.weights), warnings, found.report)

    @classmethod
    def weights(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Array:
        """Return the frozen weights of the frequencies, (n_frequencies,), in the map's dtype."""
        return arrays["weights"]

    @classmethod
    def derived_arrays(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """Return no arrays."""
        return {}

    def frequencies(self, pause: Pause = no_pause) -> Floats:
        """Return the frequencies w, (n_frequencies, d), as a copy."""
        return self._panels.matrix

    def operations(self, rows: Rows) -> int:
        """Return the number of multiplications that the phases of the rows take."""
        return self._panels.operations(rows)

    def projector(self, rows: Rows) -> Callable[[slice, Floats], None]:
        """Return the function that multiplies the rows with frequencies."""
        return self._panels.multiplier(rows)


_MANY = 1 << 20
# Entries of rows that are held in tiles: some megabytes.
_ENTRIES_IN_TILES = 192 << 10
_MOST_FREQUENCIES = 1 << 13
# Memory of a frequency, frozen and held.
_BYTES_PER_FREQUENCY = 48
# Multiplications of a matrix product that take as long as one addition in the rotation of a vector.
_PRODUCTS_PER_ADDITION = 3


class StructuredProjection:
    """Projection by random rotations, frozen as `signs`, uint8 (blocks, 3, D/8), and `radii`, (n_frequencies,).

    Each bit of `signs` is an entry of D₁, D₂ or D₃, the highest bit of a byte first, set for −1; `radii` are the
    lengths of frequencies in D dimensions at σ = 1, in the map's dtype. See `StructuredOrthogonal` for the rest.
    """

    is_dense = False

    def __init__(self, spec: BaseSpec, arrays: Arrays) -> None:
        # A copy, as loops are compiled for writable arrays.
        self._signs: Bits = arrays["signs"].copy()
        self._radii: Floats = arrays["radii"]
        self.n_frequencies = len(self._radii)
        self._size = padded_size(spec.input_dim)
        width = tile_width(_MANY, spec.input_dim, spec.numpy_dtype.itemsize)
        self.most_rows = max(1, _ENTRIES_IN_TILES // (self._size * width)) * width
        # Features of a whole slice are held, so a larger block is cut into slices.
        self.frequencies_per_block, longer = min(self._size, _MOST_FREQUENCIES), gain(self._size)
        self.slices_per_rotation = self._size // self.frequencies_per_block
        self._inverse_scales = _inverse_scales(spec)
        derived = self.derived_arrays(spec, arrays)
        self._scales: Floats = derived["scales"]
        self._lengths: Floats = derived["lengths"]
        # Intermediate results of phases must not overflow either. The norm is of ratios, whose squares do not overflow.
        largest = self._inverse_scales.max()
        norm = float(largest * np.linalg.norm(self._inverse_scales / largest))
        self.largest_norm = norm * max(longer, float(self._radii.max()))
        held = self._signs, self._radii, self._lengths, self._scales, self._inverse_scales
        self.bytes = sum(array.nbytes for array in held)

    @classmethod
    def frozen(cls, spec: BaseSpec, s: int) -> dict[str, FrozenArray]:
        """Return the arrays of signs, with a bit each, and of lengths, with one for each frequency."""
        size = padded_size(spec.input_dim)
        signs = FrozenArray((-(-s // size), ROUNDS, size // 8), np.dtype(np.uint8))
        return {"signs": signs, "radii": FrozenArray((s,), spec.numpy_dtype)}

    @classmethod
    def opening_bytes(cls, spec: BaseSpec, s: int) -> int:
        """Return the memory of the frozen arrays, of lengths in the form in which they are used, and of weights."""
        size = padded_size(spec.input_dim)
        return _BYTES_PER_FREQUENCY * s + ROUNDS * (s // size + 1) * size // 8 + 16 * size

    @classmethod
    def weights(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Array:
        """Return the weights, 1/n_frequencies each."""
        s = len(arrays["radii"])
        return np.broadcast_to(spec.numpy_dtype.type(1 / s), s)

    @classmethod
    def derived_arrays(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """Return `scales` (d,), the factors of the columns of rows, and `lengths`, the radii divided by the `gain`."""
        radii = arrays["radii"].astype(np.float64)
        lengths = (radii / gain(padded_size(spec.input_dim))).astype(spec.numpy_dtype)
        return {"scales": _inverse_scales(spec).astype(spec.numpy_dtype), "lengths": lengths}

    @classmethod
    def draw(cls, spec: BaseSpec, rng: np.random.Generator, building: Building) -> Drawn:
        """Draw signs and lengths; each frequency has the weight 1/s."""
        kernel, sampler = spectral(spec)
        law = with_lengths(_only_summand(spec))
        if not isinstance(sampler, StructuredOrthogonal):
            raise TypeError(f"sampler {sampler.kind} draws no rotations")
        s = sampler.count(spec.s, spec.input_dim)
        if sampler.is_long(s, spec.input_dim):
            building.progress.before_long_call(begin_anew)
        signs, radii = sampler.rotations(law, s, spec.input_dim, rng, partial(building.progress.checkpoint, begin_anew))
        with np.errstate(over="ignore"):  # an overflow is refused below
            inverse_scales = 1 / law.scales(spec.input_dim)
            arrays: Arrays = {"signs": signs, "radii": radii.astype(spec.numpy_dtype)}
            factors = np.array([radii.max(), inverse_scales.max()])
            largest, factors = factors.prod().astype(spec.numpy_dtype), factors.astype(spec.numpy_dtype)
        if not np.isfinite([largest, *factors]).all():  # one that is infinite is of no use even for a row of zeros
            raise kernel.out_of_range(spec.dtype.value)
        told = lost_digits(spec, inverse_scales)
        return Drawn(arrays, s, sampler.warnings(spec.input_dim) + told + (() if largest else (ALL_ZERO,)))

    def frequencies(self, pause: Pause = no_pause) -> Array:
        """Compute the frequencies w, (n_frequencies, d)."""
        return frequencies_of(self._signs, self._radii, self._inverse_scales, self._radii.dtype, pause)

    def operations(self, rows: Rows) -> int:
        """Return the cost of the additions, of whole blocks even if only a part is used; sparse rows are made dense."""
        additions = ROUNDS * (self._size.bit_length() - 1) * self._size * len(self._signs)
        return _PRODUCTS_PER_ADDITION * additions * int(rows.shape[0])

    def projector(self, rows: Rows) -> Callable[[slice, Floats], None]:
        """Return the function that rotates the rows, which are made dense."""
        scaled = made_dense(rows) * self._scales
        tiles = tiles_of(scaled)
        kept, block = np.empty_like(tiles if self._size > self.frequencies_per_block else tiles[:1]), NOTHING_KEPT

        def write(frequencies: slice, out: Floats) -> None:
            nonlocal block
            start, stop = frequencies.start, frequencies.stop
            block = rotate(tiles, kept, block, self._signs, self._lengths, start, stop, out)

        return write


def _inverse_scales(spec: BaseSpec) -> Matrix:
    return 1 / with_lengths(_only_summand(spec)).scales(spec.input_dim)


def _only_summand(spec: BaseSpec) -> SpectralKernel:
    return spectral(spec)[0].blocks(spec.input_dim)[0].kernel


Projection = DenseProjection | StructuredProjection
"""Kinds of projections, which compute phases w_l·x of rows x for frequencies w_l that frozen arrays define.

A projection owns the frozen arrays that define the frequencies, and all that is computed from them. The phases of a row
do not depend, bit for bit, on other rows.

- `is_dense`: whether frequencies and weights themselves are frozen; else both are computed.
- `frequencies_per_block`: slices of frequencies begin at a multiple of it.
- `slices_per_rotation`: number of such slices for which a projector does the same work, which it does once.
- `most_rows`: the most rows that a projector should be made for.
- `largest_norm`: upper bound of all |w_l|₁: no phase is larger than this times the largest entry of a row.
- `bytes`: memory that it holds.
- `frozen`: the arrays that define s frequencies; `opening_bytes`: memory of these arrays and of the open projection.
- `draw`: draws the set of frequencies of a spec, with all randomness from `rng`, and freezes it; InvalidInput if there
  is no such set, or it leaves the range of the dtype.
- `weights`: those of the frequencies; `derived_arrays`: arrays besides the frozen ones that phases are computed with.
- `frequencies`: function that returns w, (n_frequencies, d), in the map's dtype.
- `operations`: cost of the phases of rows, counted in multiplications of a matrix product.
- `projector`: returns the function that writes phases of rows, (n, d). Its arguments: a slice of k frequencies, and
  where to write their phases, in the first k columns of n rows, C-contiguous.
"""


def projection_of(spec: BaseSpec) -> type[Projection]:
    """Return the kind of projection whose arrays the sampler of a spec draws."""
    return StructuredProjection if isinstance(spec.sampler, StructuredOrthogonal) else DenseProjection
