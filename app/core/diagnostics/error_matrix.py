"""The matrix of the errors of a Gram matrix, tile by tile, and what is told of it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict

from app.core.arrays import Array, Rows, dense
from app.core.diagnostics.control_variates import ControlVariates, Estimator
from app.core.diagnostics.hermitian_tiles import HermitianTiles, tile_places
from app.core.diagnostics.random_pairs import Whole
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap
from app.core.maps.results import Gives
from app.core.progress import Pause, Progress, begin_anew, no_pause, packed, unpacked

# Odd, so that errors about 0, such as the diagonal's, are not shared out by chance between two bins.
BINS = 61


class Figures(TypedDict):
    """Of the error E = K̂ − K; all n² entries count."""

    relative_frobenius: Annotated[float, Field(description="‖E‖_F/‖K‖_F.")]
    relative_spectral: Annotated[float, Field(description="‖E‖₂/‖K‖₂.")]
    max_abs: Annotated[float, Field(description="max |E_ij|.")]
    mean_square: Annotated[float, Field(description="The mean of |E_ij|².")]
    bias: Annotated[float, Field(description="The mean of E_ij, which is real, as E is Hermitian.")]


class Tile(NamedTuple):
    """A tile of a Gram matrix."""

    rows: slice
    columns: slice
    x: Rows
    """The vectors of its rows."""
    y: Rows
    """Those of its columns; on the diagonal the same object as `x`, so that a map does its work once."""

    @classmethod
    def of(cls, vectors: Rows, rows: slice, columns: slice) -> "Tile":
        """The tile at a place of the Gram matrix of all vectors."""
        x = vectors[rows]
        return cls(rows, columns, x, x if rows == columns else vectors[columns])


Estimate = Callable[[Tile, NDArray[np.float64], Pause], Array]
"""A tile and its exact kernel to the estimate of it; with a call between steps of a quarter of a second."""


class Sketch(TypedDict):
    """What to draw: a histogram of E_ij over all entries, and exact against estimated kernel of some pairs i > j.

    In the form complex, the histogram is of |E_ij| and `estimate` is the real part.
    """

    edges: list[float]
    counts: list[int]
    exact: list[float]
    estimate: list[float]


class Norms(NamedTuple):
    """Of the exact matrix."""

    frobenius: float
    spectral: float


def estimates_of(
    feature_map: FeatureMap, estimators: Sequence[Estimator], vectors: Rows, before_long_call: Pause = no_pause
) -> dict[Estimator, Estimate]:
    """How to estimate the tiles of the Gram matrix of the vectors.

    Raises:
        InvalidInput: control variates that have no meaning for this map.
    """

    def by_map(tile: Tile, exact: NDArray[np.float64], pause: Pause) -> Array:
        del exact
        return feature_map.gram(tile.x, tile.y, pause)

    if not set(estimators) - {Estimator.map}:
        return dict.fromkeys(estimators, by_map)
    if Gives.frequencies not in feature_map.gives:
        kind = feature_map.spec.kernel.kind
        raise InvalidInput(f"control variates are moments of frequencies; kernel {kind} has none", "/estimators")
    controls = ControlVariates(feature_map, before_long_call)
    prepared = dense(feature_map.kernel.prepared(vectors, "/vectors"))

    def by(estimator: Estimator) -> Estimate:
        if estimator is Estimator.map:
            return by_map
        return lambda tile, exact, pause: controls.estimate(
            estimator, prepared[tile.rows], prepared[tile.columns], exact, by_map(tile, exact, pause), pause
        )

    return {estimator: by(estimator) for estimator in estimators}


class ErrorMatrix:
    """E = K̂ − K, of which one triangle is held.

    Args:
        feature_map: of any family.
        vectors: of which the matrices are.
        estimate: gives tiles of K̂.
        pairs: i > j, of which exact and estimated kernels are noted for a picture.
        progress: told how many tiles are done. Its states hold the tiles of matrices that are not too large.
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        vectors: Rows,
        estimate: Estimate,
        pairs: tuple[Whole, Whole],
        progress: Progress,
    ) -> None:
        self._n, self._progress = vectors.shape[0], progress
        self._is_complex = feature_map.gram_dtype.kind == "c"
        state = unpacked(progress.restored())
        self._tiles = HermitianTiles(self._n, self._is_complex, state)
        self._scatter = state.get("scatter", np.zeros((2, len(pairs[0]))))
        for tile in _tiles_to_set(self._tiles, vectors, progress, self._pause):
            exact = feature_map.exact_gram(tile.x, tile.y, self._pause)
            estimated = estimate(tile, exact, self._pause)
            i, j = pairs[0] - tile.rows.start, pairs[1] - tile.columns.start
            inside = (i >= 0) & (i < len(exact)) & (j >= 0) & (j < exact.shape[1])
            self._scatter[:, inside] = exact[i[inside], j[inside]], estimated[i[inside], j[inside]].real
            self._tiles.add(tile.rows, tile.columns, estimated - exact)

    def figures(self, norms: Norms) -> Figures:
        """What is told of it, beside the norms of K."""
        entries, tiles = self._n**2, self._tiles
        return Figures(
            relative_frobenius=float(np.sqrt(tiles.squares)) / norms.frobenius,
            relative_spectral=tiles.spectral_norm(self._pause) / norms.spectral,
            max_abs=tiles.largest,
            mean_square=tiles.squares / entries,
            bias=tiles.sum / entries,
        )

    def sketch(self) -> Sketch:
        """What to draw of it."""
        least, largest = 0.0 if self._is_complex else -1.0, self._tiles.largest
        counts, edges = np.zeros(BINS, np.int64), np.linspace(least, 1.0, BINS + 1)
        for mirrored, tile in self._tiles:
            # As parts of the largest: the bins of tiny errors themselves may be narrower than numbers lie.
            values = (np.abs(tile) if self._is_complex else tile) / np.float64(largest or 1.0)
            # Rounding to float32 takes the largest out of the range.
            found, _ = np.histogram(np.clip(values, least, 1.0), BINS, (least, 1.0))
            counts += (2 if mirrored else 1) * found
            self._pause()
        exact, estimate = self._scatter.tolist()
        return Sketch(edges=(largest * edges).tolist(), counts=counts.tolist(), exact=exact, estimate=estimate)

    def _pause(self) -> None:
        self._progress.checkpoint(lambda: _kept(self._tiles, scatter=self._scatter))


def exact_norms(feature_map: FeatureMap, vectors: Rows, progress: Progress) -> Norms:
    """Norms of K; `progress` as of `ErrorMatrix`."""
    tiles = HermitianTiles(vectors.shape[0], False, unpacked(progress.restored()))

    def pause() -> None:
        progress.checkpoint(lambda: _kept(tiles))

    for tile in _tiles_to_set(tiles, vectors, progress, pause):
        tiles.add(tile.rows, tile.columns, feature_map.exact_gram(tile.x, tile.y, pause))
    return Norms(float(np.sqrt(tiles.squares)), tiles.spectral_norm(pause))


def _tiles_to_set(tiles: HermitianTiles, vectors: Rows, progress: Progress, pause: Pause) -> Iterator[Tile]:
    """The tiles that are missing, one after the other; tells of each and pauses when it is done."""
    missing, of = tiles.missing(), len(list(tile_places(vectors.shape[0])))
    for left, (rows, columns) in zip(range(len(missing), 0, -1), missing, strict=True):
        progress.report(of - left, of)
        yield Tile.of(vectors, rows, columns)
        progress.report(of - left + 1, of)
        pause()


def _kept(tiles: HermitianTiles, **arrays: NDArray[np.float64]) -> bytes:
    """The state of a matrix; empty, which is to begin anew, if it is too large to be kept."""
    state = tiles.state()
    return begin_anew() if state is None else packed(**state, **arrays)
