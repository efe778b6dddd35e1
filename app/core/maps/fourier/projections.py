"""The projections, which make phases of rows: dense, and by random signs and Walsh–Hadamard matrices."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar

import numpy as np

from app.core.arrays import Array, Floats, Matrix, Rows, made_dense, row_blocks
from app.core.building import Building
from app.core.hadamard import ROUNDS, Bits, frequencies_of, gain, padded, rotate, tile_width, tiles_of
from app.core.kernels.base import SpectralKernel
from app.core.maps.fourier.drawing import ALL_ZERO, Drawn, draw_dense, lost_digits, spectral
from app.core.maps.terms import Arrays, BaseSpec, FrozenArray
from app.core.panels import Panels
from app.core.progress import begin_anew
from app.core.samplers.structured_orthogonal import StructuredOrthogonal, with_lengths


class Projection(ABC):
    """Phases w_l·x of rows x, for frequencies w_l that frozen arrays stand for.

    A projection owns the frozen arrays that say what the frequencies are, and all that is computed from them. What it
    writes of a row does not depend, bit for bit, on the rows beside it.
    """

    is_dense: ClassVar[bool] = True
    """Whether frequencies and weights are frozen themselves; else both are computed, each weight as 1/n_frequencies."""

    n_frequencies: int
    frequencies_per_block: int = 1
    """Slices of frequencies begin at a multiple of it."""
    most_rows: int = 1 << 62
    """The most rows that a projector should be asked for."""
    largest_norm: float
    """At least the largest |w_l|₁: no phase is larger than this times the largest entry of a row."""
    bytes: int
    """Memory that it holds."""

    @abstractmethod
    def __init__(self, spec: BaseSpec, arrays: Arrays) -> None:
        """Open the frozen arrays."""

    @classmethod
    @abstractmethod
    def frozen(cls, spec: BaseSpec, s: int) -> dict[str, FrozenArray]:
        """The arrays that say what s frequencies are."""

    @classmethod
    @abstractmethod
    def opening_bytes(cls, spec: BaseSpec, s: int) -> int:
        """Memory of these arrays and of the open projection."""

    @classmethod
    def weights(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Array:
        """The weights of the frequencies, (n_frequencies,), in the map's dtype; here those that are frozen."""
        return arrays["weights"]

    @classmethod
    def derived(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """What phases are made with beside the frozen arrays; here nothing."""
        return {}

    @classmethod
    @abstractmethod
    def draw(cls, spec: BaseSpec, rng: np.random.Generator, building: Building) -> Drawn:
        """Draw the set that a spec names, all randomness from `rng`, and freeze it.

        Raises:
            InvalidInput: there is no such set, or it leaves the range of the dtype.
        """

    @property
    @abstractmethod
    def frequencies(self) -> Floats:
        """w, (n_frequencies, d), in the map's dtype; a projection that does not hold them computes them anew."""

    @abstractmethod
    def operations(self, rows: Rows) -> int:
        """Cost of the phases of these rows, counted in multiplications of a matrix product."""

    @abstractmethod
    def projector(self, rows: Rows) -> Callable[[slice, Floats], None]:
        """The function that writes phases of the rows, (n, d).

        Its arguments: a slice of k frequencies, and where to write their phases, in the first k columns of n rows,
        C-contiguous.
        """


# Entries of the matrix looked at together.
_ENTRIES_PER_BLOCK = 1 << 18
# A set as it is frozen, and the map that holds it: for a coordinate of a frequency, and for that of all.
_BYTES_PER_COORDINATE = 16


class DenseProjection(Projection):
    """Phases w_l·x for frequencies w_l that are frozen as the array `frequencies`, (n_frequencies, d)."""

    def __init__(self, spec: BaseSpec, arrays: Arrays) -> None:
        frequencies = arrays["frequencies"]
        self.n_frequencies = len(frequencies)
        self._panels = Panels(frequencies)
        self.bytes, self.frequencies_per_block = self._panels.nbytes, self._panels.step
        with np.errstate(over="ignore"):  # an infinite norm takes no entry but 0
            self.largest_norm = max(
                float(np.abs(frequencies[block]).sum(axis=1, dtype=np.float64).max())
                for block in row_blocks(len(frequencies), _ENTRIES_PER_BLOCK // frequencies.shape[1])
            )

    @classmethod
    def frozen(cls, spec: BaseSpec, s: int) -> dict[str, FrozenArray]:
        """The matrix of frequencies."""
        return {"frequencies": FrozenArray((s, spec.input_dim), spec.numpy_dtype)}

    @classmethod
    def opening_bytes(cls, spec: BaseSpec, s: int) -> int:
        """Memory of the matrix in two layouts, in float64."""
        return _BYTES_PER_COORDINATE * spec.input_dim * (s + 1)

    @classmethod
    def draw(cls, spec: BaseSpec, rng: np.random.Generator, building: Building) -> Drawn:
        """Draw the matrix and the weights."""
        return draw_dense(spec, rng, building)

    @property
    def frequencies(self) -> Floats:
        """w, (n_frequencies, d), in memory of their own."""
        return self._panels.matrix

    def operations(self, rows: Rows) -> int:
        """Multiplications that the phases of the rows take."""
        return self._panels.operations(rows)

    def projector(self, rows: Rows) -> Callable[[slice, Floats], None]:
        """The product of the rows with the frequencies."""
        return self._panels.multiplier(rows)


_MANY = 1 << 20
# Of rows in tiles: some megabytes.
_ENTRIES_IN_TILES = 192 << 10
_MOST_FREQUENCIES = 1 << 13
# Of what is frozen and held.
_BYTES_PER_FREQUENCY = 48
# Multiplications of a matrix product that take as long as one addition of a vector's rotation.
_PRODUCTS_PER_ADDITION = 3


class StructuredProjection(Projection):
    """Phases for frequencies that stand in `signs`, uint8 (blocks, 3, D/8), and `radii`, (n_frequencies,).

    A bit of `signs` is an entry of D₁, D₂ or D₃, the highest of a byte first, set for −1; `radii` are the lengths of
    frequencies in D dimensions at σ = 1, in the map's dtype. See `StructuredOrthogonal` for the rest.
    """

    is_dense = False

    def __init__(self, spec: BaseSpec, arrays: Arrays) -> None:
        # A copy, as loops are compiled for arrays that may be written to.
        self._signs: Bits = arrays["signs"].copy()
        self._radii: Floats = arrays["radii"]
        self.n_frequencies = len(self._radii)
        self._size = padded(spec.input_dim)
        width = tile_width(_MANY, spec.input_dim, spec.numpy_dtype.itemsize)
        self.most_rows = max(1, _ENTRIES_IN_TILES // (self._size * width)) * width
        # What is larger is rotated anew for each slice: features of a slice are held.
        self.frequencies_per_block, longer = min(self._size, _MOST_FREQUENCIES), gain(self._size)
        self._inverse_scales = _inverse_scales(spec)
        derived = self.derived(spec, arrays)
        self._scales: Floats = derived["scales"]
        self._lengths: Floats = derived["lengths"]
        # Nothing on the way to a phase may overflow either. A norm by way of ratios, whose squares do not.
        largest = self._inverse_scales.max()
        norm = float(largest * np.linalg.norm(self._inverse_scales / largest))
        self.largest_norm = norm * max(longer, float(self._radii.max()))
        held = self._signs, self._radii, self._lengths, self._scales, self._inverse_scales
        self.bytes = sum(array.nbytes for array in held)

    @classmethod
    def frozen(cls, spec: BaseSpec, s: int) -> dict[str, FrozenArray]:
        """A bit for each sign, and a length for each frequency."""
        size = padded(spec.input_dim)
        signs = FrozenArray((-(-s // size), ROUNDS, size // 8), np.dtype(np.uint8))
        return {"signs": signs, "radii": FrozenArray((s,), spec.numpy_dtype)}

    @classmethod
    def opening_bytes(cls, spec: BaseSpec, s: int) -> int:
        """Memory of what is frozen, of lengths as they are used, and of weights."""
        size = padded(spec.input_dim)
        return _BYTES_PER_FREQUENCY * s + ROUNDS * (s // size + 1) * size // 8 + 16 * size

    @classmethod
    def weights(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Array:
        """1/n_frequencies each."""
        s = len(arrays["radii"])
        return np.broadcast_to(spec.numpy_dtype.type(1 / s), s)

    @classmethod
    def derived(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """`scales` (d,), what the columns of rows are multiplied by, and `lengths`, the radii over the `gain`."""
        radii = arrays["radii"].astype(np.float64)
        lengths = (radii / gain(padded(spec.input_dim))).astype(spec.numpy_dtype)
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
        with np.errstate(over="ignore"):  # what overflows is refused by name
            inverse_scales = 1 / law.scales(spec.input_dim)
            arrays: Arrays = {"signs": signs, "radii": radii.astype(spec.numpy_dtype)}
            largest = (radii.max() * inverse_scales.max()).astype(spec.numpy_dtype)
        if not np.isfinite(largest):
            raise kernel.out_of_range(spec.dtype.value)
        told = lost_digits(spec, inverse_scales)
        return Drawn(arrays, s, sampler.warnings(spec.input_dim) + told + (() if largest else (ALL_ZERO,)))

    @property
    def frequencies(self) -> Floats:
        """w, (n_frequencies, d), computed anew."""
        return frequencies_of(self._signs, self._radii, self._inverse_scales, self._radii.dtype)

    def operations(self, rows: Rows) -> int:
        """By the additions of whole blocks, as a block that is cut is computed whole; sparse rows are made dense."""
        additions = ROUNDS * (self._size.bit_length() - 1) * self._size * len(self._signs)
        return _PRODUCTS_PER_ADDITION * additions * int(rows.shape[0])

    def projector(self, rows: Rows) -> Callable[[slice, Floats], None]:
        """The rotation of the rows, which are made dense."""
        scaled = made_dense(rows) * self._scales
        tiles = tiles_of(scaled)

        def write(frequencies: slice, out: Floats) -> None:
            rotate(tiles, self._signs, self._lengths, frequencies.start, frequencies.stop, out)

        return write


def _inverse_scales(spec: BaseSpec) -> Matrix:
    return 1 / with_lengths(_only_summand(spec)).scales(spec.input_dim)


def _only_summand(spec: BaseSpec) -> SpectralKernel:
    return spectral(spec)[0].blocks(spec.input_dim)[0].kernel
