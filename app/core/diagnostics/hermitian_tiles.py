"""A Hermitian matrix held as float32 tiles of its lower triangle, and its spectral norm."""

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np
import scipy

from app.core.arrays import Array, row_blocks
from app.core.compiled import compiled
from app.core.errors import InvalidInput
from app.core.progress import Pause, begin_anew, no_pause, packed

# Rows of a tile: four million entries, so that what is computed of a tile at a time stays small.
TILE_ROWS = 2048
# Relative accuracy of the spectral norm: residual of the eigenpair over the eigenvalue, which bounds its error.
SPECTRAL_TOLERANCE = 1e-7
# Up to here all eigenvalues are as quickly computed as one.
_MOST_ROWS_DENSE = 64
# Tiles that take more are not kept in a state: writing them would take longer than computing them again.
MOST_KEPT_BYTES = 1 << 26


def tile_places(n: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the tiles of the lower triangle, the diagonal included; those on it are whole squares."""
    for rows in row_blocks(n, TILE_ROWS):
        for columns in row_blocks(rows.stop, TILE_ROWS):
            yield rows, columns


class HermitianTiles:
    """Tiles set one after the other, in the order of `tile_places`; sums over the whole matrix; its spectral norm.

    Entries are rounded to float32 (complex64), each to 6e-8 of itself: half the memory, (n²/2)·4 bytes or twice that,
    and no loss that the tolerance of the norm would show. Sums are of the entries before, in float64, and so are
    products. Given the arrays of what `state` gave earlier, it goes on from there.
    """

    def __init__(self, n: int, is_complex: bool, state: Mapping[str, Array] | None = None) -> None:
        self._n, self._places = n, [*tile_places(n)]
        self._stored = np.dtype(np.complex64 if is_complex else np.float32)
        self._summed = np.dtype(np.complex128 if is_complex else np.float64)
        self._tiles: list[tuple[slice, slice, Array]] = []
        self.squares = self.sum = self.largest = 0.0
        """Σ |E_ij|², Σ Re E_ij and max |E_ij|, of all n² entries once all tiles are set."""
        if state:
            self.squares, self.sum, self.largest = state["sums"].tolist()
            held = state["held"]
            while held.size:
                rows, columns = self.missing[0]
                shape = rows.stop - rows.start, columns.stop - columns.start
                self._tiles.append((rows, columns, held[: prod(shape)].reshape(shape)))
                held = held[prod(shape) :]

    def state(self, **others: Array) -> bytes:
        """The sums, all tiles that are set, and others; empty, which is to begin anew, if the tiles are too large."""
        if sum(tile.nbytes for _, _, tile in self._tiles) > MOST_KEPT_BYTES:
            return begin_anew()
        held = np.concatenate([np.empty(0, self._stored), *(tile.ravel() for _, _, tile in self._tiles)])
        return packed(sums=np.array([self.squares, self.sum, self.largest]), held=held, **others)

    @property
    def missing(self) -> list[tuple[slice, slice]]:
        """The places of the tiles that are not set yet."""
        return self._places[len(self._tiles) :]

    def add(self, tile: Array, pause: Pause = no_pause) -> None:
        """Set the tile at the first of the missing places, after the last pause; InvalidInput if it leaves float32."""
        rows, columns = self.missing[0]
        with np.errstate(over="ignore"):  # refused by name below
            stored = tile.astype(self._stored)
        if not np.isfinite(stored).all():
            raise InvalidInput("errors of these rows leave the range of float32", "/estimators")
        pause()
        twice = 1 if rows == columns else 2
        total, size = float(tile.real.sum()), np.abs(tile)
        pause()
        self._tiles.append((rows, columns, stored))
        self.sum += twice * total
        self.largest = max(self.largest, float(size.max()))
        self.squares += twice * float(np.vdot(size, size))

    def __iter__(self) -> Iterator[tuple[bool, Array]]:
        """Every tile, and whether it stands for its mirror image too."""
        return ((rows != columns, tile) for rows, columns, tile in self._tiles)

    def spectral_norm(self, pause: Pause = no_pause) -> float:
        """The largest |eigenvalue|, to `SPECTRAL_TOLERANCE` of itself, by Lanczos' method from a fixed start.

        It takes products with the whole matrix, some 25 of them, and pauses within each.
        """
        scale = max(float(np.abs(tile).max()) for _, _, tile in self._tiles)
        if scale == 0:
            return 0.0
        if self._n <= _MOST_ROWS_DENSE:
            return float(np.linalg.norm(self._tiles[0][2].astype(self._summed), 2))
        # Scaled, so that nothing inside takes a small error for a zero.
        operator = scipy.sparse.linalg.LinearOperator(
            (self._n, self._n), matvec=lambda v: self.product(v.ravel(), pause) / scale, dtype=self._summed
        )
        start = np.random.default_rng(0).standard_normal(self._n).astype(self._summed)
        rng = np.random.default_rng(0)
        largest = scipy.sparse.linalg.eigsh(
            operator, k=1, v0=start, tol=SPECTRAL_TOLERANCE, return_eigenvectors=False, rng=rng
        )
        return scale * float(abs(largest[0]))

    def product(self, vector: Array, pause: Pause = no_pause) -> Array:
        """The whole matrix times a vector, both (n,); every tile has to be set."""
        vector = np.ascontiguousarray(vector, self._summed)
        product = np.zeros(self._n, self._summed)
        # What a tile off the diagonal adds as its own mirror image; of a whole square that is dropped.
        dropped = np.empty(min(self._n, TILE_ROWS), self._summed)
        for rows, columns, tile in self._tiles:
            mirrored = dropped[: tile.shape[1]] if rows == columns else product[columns]
            _add_products(tile, vector[rows], vector[columns], product[rows], mirrored)
            pause()
        return product


@compiled
def _add_products(tile: Array, by_row: Array, by_column: Array, to_row: Array, to_column: Array) -> None:
    """Add tile·by_column and tileᴴ·by_row in one pass, four rows at a time: sums that wait for each other are slow."""
    fours = tile.shape[0] - tile.shape[0] % 4
    for i in range(0, fours, 4):
        a, b, c, d = tile[i], tile[i + 1], tile[i + 2], tile[i + 3]
        w, x, y, z = by_row[i], by_row[i + 1], by_row[i + 2], by_row[i + 3]
        sum_a = sum_b = sum_c = sum_d = 0 * w
        for j in range(tile.shape[1]):
            v = by_column[j]
            sum_a += a[j] * v
            sum_b += b[j] * v
            sum_c += c[j] * v
            sum_d += d[j] * v
            to_column[j] += np.conj(a[j]) * w + np.conj(b[j]) * x + np.conj(c[j]) * y + np.conj(d[j]) * z
        to_row[i] += sum_a
        to_row[i + 1] += sum_b
        to_row[i + 2] += sum_c
        to_row[i + 3] += sum_d
    for i in range(fours, tile.shape[0]):
        for j in range(tile.shape[1]):
            to_row[i] += tile[i, j] * by_column[j]
            to_column[j] += np.conj(tile[i, j]) * by_row[i]
