"""Sums of Gaussian kernels on subsets of the coordinates."""

from functools import cached_property, lru_cache
from itertools import chain
from math import prod
from typing import Annotated, Any, Literal, Self
from weakref import WeakValueDictionary

import numpy as np
from pydantic import Field, model_validator
from scipy import sparse

from app.core.arrays import Matrix, Rows, Whole, dense, of_columns, row_blocks
from app.core.compiled import jit
from app.core.errors import InvalidInput
from app.core.kernels.base import LENGTH_SCALE, Block, LengthScale, Positive, ShiftInvariantKernel, divided_by_powers
from app.core.kernels.gaussian import Gaussian
from app.core.kernels.rounding import OfLengthScales
from app.core.model import GQ, Frozen
from app.core.quantiles import exponential

# Squared differences computed at a time, few enough for the cache; and the fewest and most rows of y per block.
_SQUARES, _FEWEST_ROWS, _MOST_ROWS = 1 << 15, 8, 512


_BYTES_PER_COORDINATE = 64


@jit
def gaussian_sums(
    x: Matrix, y: Matrix, factors: Matrix, columns: Whole, ends: Whole, weights: Matrix, out: Matrix
) -> None:
    """Compute Σ_S weight_S exp(−Σ_{j∈S} factor_j (x_j − y_j)²) of rows x (n, d), columns y (d, m), into out (n, m).

    Subset S consists of the coordinates columns[ends[S] : ends[S + 1]]. All arrays are C-contiguous.
    """
    d, m = y.shape
    step = min(m, max(_FEWEST_ROWS, min(_MOST_ROWS, _SQUARES // d)))
    squares, exponents = np.empty((d, step)), np.empty(step)
    for start in range(0, m, step):
        n_rows = min(m, start + step) - start
        for i in range(x.shape[0]):
            _squares(x[i], y, factors, start, n_rows, squares)
            sums = out[i, start : start + n_rows]
            for k in range(n_rows):
                sums[k] = 0.0
            for subset in range(len(weights)):
                for k in range(n_rows):
                    exponents[k] = 0.0
                for place in range(ends[subset], ends[subset + 1]):
                    of_column = squares[columns[place]]
                    for k in range(n_rows):
                        exponents[k] -= of_column[k]
                for k in range(n_rows):
                    sums[k] += weights[subset] * exponential(exponents[k])


@jit
def _squares(row: Matrix, y: Matrix, factors: Matrix, start: int, n_rows: int, out: Matrix) -> None:
    """Write factor_j (x_j − y_j)² of one row and `n_rows` columns of y from `start` to out, one row per coordinate."""
    for j in range(len(row)):
        a, factor, others, of_column = row[j], factors[j], y[j, start : start + n_rows], out[j]
        for k in range(n_rows):
            apart = a - others[k]
            of_column[k] = factor * (apart * apart)


_MOST_SUBSETS = 1 << 16
# Entries of a block of rows by subsets, which bounds the memory for norms.
_ENTRIES_PER_BLOCK = 1 << 20
# Multiplications that take as long as adding a square to the norm over a subset, for dense rows and for sparse ones.
_OPERATIONS_PER_SQUARE, _OPERATIONS_PER_SPARSE_SQUARE = 8, 80
# Limit on the coordinates named by all placements of `windows` together.
_MOST_COORDINATES = 1 << 18

Extent = Annotated[int, Field(ge=1, le=1 << 15)]
Subset = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1, fail_fast=True)]


@lru_cache(1)
def _gaussian(scale: LengthScale) -> Gaussian:
    """Return the Gaussian kernel of a subset. Tens of thousands of subsets with the same scale share one object."""
    return Gaussian(kind="gaussian", length_scale=scale)


class Windows(Frozen):
    """All placements of a patch in an image. The coordinates of a vector are the pixels, row by row."""

    image_shape: tuple[Extent, Extent]
    """Number of rows and columns of pixels of the image; their product is input_dim."""
    patch_shape: tuple[Extent, Extent]
    """Number of rows and columns of pixels of a patch."""

    def subsets(self) -> tuple[tuple[int, ...], ...]:
        """Return the pixels of each placement, as coordinates."""
        pixels = np.arange(prod(self.image_shape)).reshape(self.image_shape)
        patches = np.lib.stride_tricks.sliding_window_view(pixels, self.patch_shape)
        return tuple(map(tuple, patches.reshape(-1, prod(self.patch_shape)).tolist()))


class _Places:
    """Subsets of coordinates, and arrays of them."""

    def __init__(self, subsets: tuple[tuple[int, ...], ...]) -> None:
        self.subsets = subsets

    @cached_property
    def named(self) -> tuple[Whole, Whole, Whole]:
        """Distinct coordinates named; each subset's coordinates as indices into them; offsets of subsets in these."""
        named, places = np.unique(np.fromiter(chain.from_iterable(self.subsets), np.int64), return_inverse=True)
        return named, places, np.cumsum([0, *map(len, self.subsets)])

    @cached_property
    def membership(self) -> sparse.csr_array:
        """Matrix with 1 where a subset has a coordinate, (subsets, coordinates named)."""
        named, places, ends = self.named
        return sparse.csr_array((np.ones(len(places)), places, ends), shape=(len(self.subsets), len(named)))


# Kernels with equal windows share their places, as long as there are such kernels.
_OF_WINDOWS: WeakValueDictionary[Windows, _Places] = WeakValueDictionary()


class Anova(ShiftInvariantKernel):
    """Σ_S weight_S Π_{i∈S} exp(−δ_i²/(2σ_i²)) over subsets S of the coordinates, not normalised.

    Each subset gets an equal share of the s frequencies, which are zero outside it; rules are applied to each subset.
    Suits convolution-like structure: `windows` makes the subsets of all patches of an image.

    Choose when:
        Use it if only a few coordinates act together, such as the pixels of a patch (`windows`). Because the subsets
        are small, rules such as dense_grid and polynomially_exact work on each subset, although they are useless on all
        coordinates together.
    """

    source = f"{GQ}, section 4"
    limits = (
        "s of at least the number of subsets",
        f"at most {_MOST_COORDINATES} coordinates named by all placements of `windows` together",
    )

    operations_per_coordinate = 1
    operations_per_value = 8

    kind: Literal["anova"]
    length_scale: LengthScale = Field(description=LENGTH_SCALE)
    subsets: Annotated[tuple[Subset, ...], Field(min_length=1, max_length=_MOST_SUBSETS, fail_fast=True)] | None = None
    """Subsets, each a list of coordinates counted from 0; instead of `windows`."""
    windows: Windows | None = None
    """All patches of an image as subsets; instead of `subsets`."""
    weights: Annotated[tuple[Positive, ...], Field(fail_fast=True)] | None = None
    """Factor of each subset's kernel, one per subset; 1 if not given."""

    @model_validator(mode="after")
    def _one_way_to_name_subsets(self) -> Self:
        if (self.subsets is None) == (self.windows is None):
            came = "both" if self.subsets is not None else "neither"
            raise InvalidInput(f"expected one of subsets and windows, got {came}", "/kernel")
        if self.windows is not None:
            (height, width), (tall, wide) = self.windows.image_shape, self.windows.patch_shape
            placements = (height - tall + 1) * (width - wide + 1)
            if tall > height or wide > width:
                detail = f"a patch of {tall}×{wide} does not fit an image of {height}×{width}"
                raise InvalidInput(detail, "/kernel/windows/patch_shape")
            named = placements * tall * wide
            if named > _MOST_COORDINATES:
                raise InvalidInput(
                    f"expected up to {_MOST_COORDINATES} coordinates, got {placements} patches of {tall}×{wide}",
                    "/kernel/windows",
                )
        return self

    def check(self, input_dim: int) -> None:
        """Refuse invalid subsets, an image whose number of pixels is not input_dim, and a wrong number of weights."""
        if self.windows is not None and (pixels := prod(self.windows.image_shape)) != input_dim:
            reason = f"an image of {self.windows.image_shape} has {pixels} pixels; input_dim is {input_dim}"
            raise InvalidInput(reason, "/kernel/windows/image_shape")
        for i, subset in enumerate(self.subsets or ()):
            if max(subset) >= input_dim or len(set(subset)) < len(subset):
                detail = f"subset {i} must name coordinates from 0 to {input_dim - 1}, each once"
                raise InvalidInput(detail, f"/kernel/subsets/{i}")
        if self.weights is not None and len(self.weights) != len(self._subsets):
            raise InvalidInput(f"expected {len(self._subsets)} weights, got {len(self.weights)}", "/kernel/weights")
        Gaussian(kind="gaussian", length_scale=self.length_scale).check(input_dim)

    def blocks(self, input_dim: int) -> tuple[Block, ...]:
        """Return one Gaussian kernel per subset."""
        return self._blocks

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        weights = self.weights or (1.0,) * len(self._subsets)
        return tuple(
            Block(_gaussian(self._scale(subset)), subset, weight)
            for subset, weight in zip(self._subsets, weights, strict=True)
        )

    def rounding(self, dtype: np.dtype[np.floating]) -> OfLengthScales:
        """Return the error in length scales, on each row's subset of largest norm: its kernel is affected first."""
        scales = np.asarray(self.length_scale, np.float64)
        return OfLengthScales(dtype, scales, self._largest_norms, is_sum=False, operations_of=self._norm_operations)

    def warnings(self) -> tuple[str, ...]:
        """Return a warning for the first pair of subsets that name the same coordinates, if there is one."""
        first: dict[tuple[int, ...], int] = {}
        for i, subset in enumerate(self.subsets or ()):
            before = first.setdefault(tuple(sorted(subset)), i)
            if before < i:
                return (
                    f"subsets {before} and {i} name the same coordinates (the first such pair): they act as one subset "
                    "whose weight is the sum of theirs",
                )
        return ()

    @property
    def derived_bytes(self) -> int:
        """Memory of the subsets that `windows` stand for, as objects and as arrays."""
        return _BYTES_PER_COORDINATE * sum(map(len, self._subsets))

    def comparison_operations(self, x: Rows, y: Rows) -> int:
        """Return the cost, for each pair of rows, of the coordinates of all subsets and of one kernel per subset."""
        named = sum(map(len, self._subsets))
        per_pair = self.operations_per_coordinate * named + self.operations_per_value * len(self._subsets)
        return int(x.shape[0] * y.shape[0] * per_pair)

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Compute the exact kernel block from differences, summed over the subsets."""
        return self.gram_of_named(self.restrict(x), self.restrict(y))

    def restrict(self, rows: Rows) -> Rows:
        """Return the rows restricted to the coordinates that are in a subset, in order; others do not matter."""
        named = self._places.named[0]
        return rows[:, named] if isinstance(rows, np.ndarray) else of_columns(rows, named)

    def gram_of_named(self, x: Rows, y: Rows) -> Matrix:
        """Compute the exact kernel block of rows after `restrict`."""
        if y.shape[0] < x.shape[0]:  # the loop is fast for many rows of y
            return self.gram_of_named(y, x).T
        named, places, ends = self._places.named
        scale = np.asarray(self.length_scale, np.float64)
        scales = scale[named] if scale.ndim else np.broadcast_to(scale, named.shape)
        rest, of_x, of_y = divided_by_powers(dense(x), dense(y), scales)
        weights = np.ones(len(self._subsets)) if self.weights is None else np.array(self.weights)
        gram = np.empty((len(of_x), len(of_y)))
        by_row, by_column = (np.ascontiguousarray(rows, np.float64) for rows in (of_x, of_y.T))
        gaussian_sums(by_row, by_column, 0.5 / rest**2, places, ends, weights, gram)
        return gram

    @cached_property
    def _places(self) -> "_Places":
        if self.windows is None:
            return _Places(self.subsets or ())
        found = _OF_WINDOWS.get(self.windows)
        if found is None:
            found = _OF_WINDOWS[self.windows] = _Places(self.windows.subsets())
        return found

    @property
    def _subsets(self) -> tuple[tuple[int, ...], ...]:
        return self._places.subsets

    def _largest_norms(self, scaled: Rows) -> Matrix:
        """Return each row's largest norm over the subsets, (n,), for rows (n, d)."""
        found, of_named = np.empty(scaled.shape[0]), self.restrict(scaled)
        for block in row_blocks(len(found), _ENTRIES_PER_BLOCK // len(self._subsets)):
            of_subsets: Any = self._places.membership @ of_named[block].T ** 2
            largest = of_subsets.max(axis=0)  # sparse for sparse rows
            found[block] = largest if isinstance(largest, np.ndarray) else largest.toarray().reshape(-1)
        return np.sqrt(found)

    def _norm_operations(self, rows: Rows) -> int:
        """Return the cost of `_largest_norms`, counted in multiplications of a matrix product."""
        named, places, _ = self._places.named
        if isinstance(rows, np.ndarray):
            return _OPERATIONS_PER_SQUARE * int(rows.shape[0]) * len(places)
        of_entries: Whole = np.bincount(places)[of_columns(rows, named).indices]
        return _OPERATIONS_PER_SPARSE_SQUARE * int(of_entries.sum())

    def _scale(self, subset: tuple[int, ...]) -> LengthScale:
        scale = self.length_scale
        return tuple(scale[i] for i in subset) if isinstance(scale, tuple) else scale
