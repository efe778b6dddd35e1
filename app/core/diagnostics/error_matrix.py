"""The matrix of the errors of a Gram matrix, tile by tile, and what is told of it."""

from collections.abc import Callable, Sequence
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

# Odd, so that errors about 0, such as the diagonal's, are not shared out by chance between two bins.
BINS = 61


class Figures(TypedDict):
    """Of the error E = K̂ − K; all n² entries count."""

    relative_frobenius: Annotated[float, Field(description="‖E‖_F/‖K‖_F.")]
    relative_spectral: Annotated[float, Field(description="‖E‖₂/‖K‖₂.")]
    max_abs: Annotated[float, Field(description="max |E_ij|.")]
    mean_square: Annotated[float, Field(description="The mean of |E_ij|².")]
    bias: Annotated[float, Field(description="The mean of E_ij, which is real, as E is Hermitian.")]


Estimate = Callable[[slice, slice, NDArray[np.float64]], Array]
"""Rows, columns and the exact kernel of a tile to its estimate."""


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


def estimates_of(feature_map: FeatureMap, estimators: Sequence[Estimator], rows: Rows) -> dict[Estimator, Estimate]:
    """How to estimate the tiles of the Gram matrix of the rows.

    Raises:
        InvalidInput: control variates that have no meaning for this map.
    """

    def by_map(block: slice, columns: slice, exact: NDArray[np.float64]) -> Array:
        del exact
        return feature_map.gram(rows[block], rows[columns])

    if not set(estimators) - {Estimator.map}:
        return dict.fromkeys(estimators, by_map)
    if Gives.frequencies not in feature_map.gives:
        kind = feature_map.spec.kernel.kind
        raise InvalidInput(f"control variates are moments of frequencies; kernel {kind} has none", "/estimators")
    controls = ControlVariates(feature_map)
    prepared = dense(feature_map.kernel.prepared(rows, "/vectors"))

    def by(estimator: Estimator) -> Estimate:
        if estimator is Estimator.map:
            return by_map
        return lambda block, columns, exact: controls.estimate(
            estimator, prepared[block], prepared[columns], exact, by_map(block, columns, exact)
        )

    return {estimator: by(estimator) for estimator in estimators}


class ErrorMatrix:
    """E = K̂ − K, of which one triangle is held.

    Args:
        feature_map: Fourier or hashing.
        rows: of which the matrices are.
        estimate: gives tiles of K̂.
        pairs: i > j, of which exact and estimated kernels are noted for a picture.
        told: is called after each tile.
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        rows: Rows,
        estimate: Estimate,
        pairs: tuple[Whole, Whole],
        told: Callable[[], None],
    ) -> None:
        self._n = rows.shape[0]
        self._is_complex = feature_map.gram_dtype.kind == "c"
        self._tiles = HermitianTiles(self._n, self._is_complex)
        self._squares = self._sum = self._max = 0.0
        self._scatter = np.empty((2, len(pairs[0])))
        for block, columns in tile_places(self._n):
            exact = feature_map.exact_gram(rows[block], rows[columns])
            estimated = estimate(block, columns, exact)
            i, j = pairs[0] - block.start, pairs[1] - columns.start
            inside = (i >= 0) & (i < len(exact)) & (j >= 0) & (j < exact.shape[1])
            self._scatter[:, inside] = exact[i[inside], j[inside]], estimated[i[inside], j[inside]].real
            error = estimated - exact
            self._tiles.add(block, columns, error)
            twice = 1 if block == columns else 2
            self._sum += twice * float(error.real.sum())
            size = np.abs(error)
            self._max = max(self._max, float(size.max()))
            self._squares += twice * float(np.vdot(size, size))
            told()

    def figures(self, norms: Norms) -> Figures:
        """What is told of it, beside the norms of K."""
        entries = self._n**2
        return Figures(
            relative_frobenius=float(np.sqrt(self._squares)) / norms.frobenius,
            relative_spectral=self._tiles.spectral_norm() / norms.spectral,
            max_abs=self._max,
            mean_square=self._squares / entries,
            bias=self._sum / entries,
        )

    def sketch(self) -> Sketch:
        """What to draw of it."""
        least = 0.0 if self._is_complex else -1.0
        counts, edges = np.zeros(BINS, np.int64), np.linspace(least, 1.0, BINS + 1)
        for mirrored, tile in self._tiles:
            # As parts of the largest: the bins of tiny errors themselves may be narrower than numbers lie.
            values = (np.abs(tile) if self._is_complex else tile) / np.float64(self._max or 1.0)
            # Rounding to float32 takes the largest out of the range.
            found, _ = np.histogram(np.clip(values, least, 1.0), BINS, (least, 1.0))
            counts += (2 if mirrored else 1) * found
        exact, estimate = self._scatter.tolist()
        return Sketch(edges=(self._max * edges).tolist(), counts=counts.tolist(), exact=exact, estimate=estimate)


def exact_norms(feature_map: FeatureMap, rows: Rows, told: Callable[[], None]) -> Norms:
    """Norms of K; `told` is called after each tile."""
    n = rows.shape[0]
    tiles, squares = HermitianTiles(n, False), 0.0
    for block, columns in tile_places(n):
        exact = feature_map.exact_gram(rows[block], rows[columns])
        squares += (1 if block == columns else 2) * float(np.vdot(exact, exact))
        tiles.add(block, columns, exact)
        told()
    return Norms(float(np.sqrt(squares)), tiles.spectral_norm())
