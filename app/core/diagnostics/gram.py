"""How far a map's Gram matrix is from the kernel's, beside that of Monte Carlo frequencies."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Rows, dense
from app.core.diagnostics.control_variates import ControlVariates, Estimator
from app.core.diagnostics.draws import Whole, map_seeds, row_pairs
from app.core.diagnostics.hermitian_tiles import HermitianTiles, tile_places
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap, FourierMap
from app.core.samplers.monte_carlo import MonteCarlo
from app.core.work import Parts, Work

MOST_ROWS = 20_000
# Odd, so that errors about 0, such as the diagonal's, are not shared out by chance between two bins.
BINS = 61
SCATTER_PAIRS = 2000

Figures = dict[str, float]
"""Of the error E = K̂ − K: `relative_frobenius` ‖E‖_F/‖K‖_F, `relative_spectral` ‖E‖₂/‖K‖₂, `max_abs` max |E_ij|,
`mean_square` the mean of |E_ij|², `bias` the mean of E_ij (real, E being Hermitian); all n² entries count."""

_SIZES = ("relative_frobenius", "relative_spectral", "max_abs", "mean_square")
"""The figures that are sizes, and so have a ratio to another's."""


class Baseline(TypedDict):
    """Figures of maps of as many Monte Carlo frequencies, over seeds; sd of the sample, None for one seed."""

    seeds: int
    mean: Figures
    sd: Figures | None


class Picture(TypedDict):
    """What to draw: a histogram of E_ij over all entries, and exact against estimated kernel of some pairs i > j.

    In the form complex, the histogram is of |E_ij| and `estimate` is the real part.
    """

    edges: list[float]
    counts: list[int]
    exact: list[float]
    estimate: list[float]


class GramErrors(TypedDict):
    """The answer. `form` is whose error is measured (None for hashes); `ratios` are figures over the baseline's mean.

    In the form complex the imaginary part, which the kernel has not, is error too.
    """

    rows: int
    form: str | None
    estimators: dict[str, Figures]
    monte_carlo: Baseline | None
    ratios: dict[str, dict[str, float | None]]
    pictures: dict[str, Picture]


class _Norms(NamedTuple):
    frobenius: float
    spectral: float


def gram_errors(
    feature_map: FeatureMap,
    rows: Rows,
    estimators: Sequence[Estimator] = (Estimator.map,),
    *,
    seeds: int = 5,
    seed: int = 0,
    pictures: bool = True,
    work: Work | None = None,
) -> GramErrors:
    """Errors of the Gram matrix of the rows.

    K̂ is what the map's `gram` answers, in the map's dtype; its errors are summed up in float64. Block by block: of the
    n×n matrices never more is held than one triangle of one of them, in float32, which the spectral norm is taken of.

    Hashes have no Monte Carlo baseline: they are independent draws themselves, and the law of their error is known
    (`variance`).

    Args:
        feature_map: Fourier or hashing.
        rows: behind the gate, 2 to `MOST_ROWS`.
        estimators: what to measure.
        seeds: how many Monte Carlo maps to compare with; 0 for none.
        seed: of those maps and of the pairs to draw.
        work: told after every matrix that was measured, and given what was measured of it.
        pictures: whether to find what to draw as well; without, `pictures` of the answer is empty.

    Raises:
        InvalidInput: too few or too many rows or without a kernel, meaningless control variates, errors out of float32.
    """
    n = rows.shape[0]
    if not 2 <= n <= MOST_ROWS:
        raise InvalidInput(f"{n} rows came; a Gram matrix is measured on 2 to {MOST_ROWS}", "/vectors")
    if isinstance(feature_map, FourierMap):
        feature_map.kernel.prepared(rows, "/vectors")
    else:
        feature_map.refuse_empty(rows, "/vectors")
    estimates = {estimator: _estimate_of(feature_map, estimator, rows) for estimator in estimators}
    work = work or Work()
    parts = Parts(work)
    norms = _Norms(*parts.once("exact", lambda: [*_exact_norms(feature_map, rows)]))
    figures: dict[str, Figures] = {}
    drawn: dict[str, Picture] = {}
    pairs = row_pairs(n, SCATTER_PAIRS if pictures else 0, seed)
    matrices = len(estimates) + (seeds if isinstance(feature_map, FourierMap) else 0)
    for done, (estimator, estimate) in enumerate(estimates.items(), 1):
        measure = partial(_measured, feature_map, rows, estimate, pairs, norms, pictures)
        figures[estimator.value], picture = parts.once(estimator.value, measure)
        if picture is not None:
            drawn[estimator.value] = picture
        work.progress(done, matrices)
    found = []
    if isinstance(feature_map, FourierMap):
        for its_seed in map_seeds(seed, seeds):
            found.append(parts.once(str(its_seed), partial(_of_monte_carlo, feature_map, rows, norms, its_seed)))
            work.progress(len(estimates) + len(found), matrices)
    baseline = _baseline(found) if found else None
    return GramErrors(
        rows=n,
        form=feature_map.spec.form.value if isinstance(feature_map, FourierMap) else None,
        estimators=figures,
        monte_carlo=baseline,
        ratios={name: _ratios(of, baseline["mean"]) for name, of in figures.items()} if baseline else {},
        pictures=drawn,
    )


Estimate = Callable[[slice, slice, NDArray[np.float64]], Array]
"""Rows, columns and the exact kernel of a tile to its estimate."""


def _estimate_of(feature_map: FeatureMap, estimator: Estimator, rows: Rows) -> Estimate:
    if estimator is Estimator.map:
        return lambda block, columns, _: feature_map.gram(rows[block], rows[columns])
    if not isinstance(feature_map, FourierMap):
        raise InvalidInput("control variates are moments of frequencies; kernel gmm has none", "/estimators")
    controls = ControlVariates(feature_map)
    prepared = dense(feature_map.kernel.prepared(rows, "/vectors"))

    def estimate(block: slice, columns: slice, exact: NDArray[np.float64]) -> Array:
        approximate = feature_map.gram(rows[block], rows[columns])
        return controls.estimate(estimator, prepared[block], prepared[columns], exact, approximate)

    return estimate


class _Error:
    """One pass over the tiles of an error matrix."""

    def __init__(self, feature_map: FeatureMap, rows: Rows, estimate: Estimate, pairs: tuple[Whole, Whole]) -> None:
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

    def figures(self, norms: _Norms) -> Figures:
        entries = self._n**2
        return {
            "relative_frobenius": float(np.sqrt(self._squares)) / norms.frobenius,
            "relative_spectral": self._tiles.spectral_norm() / norms.spectral,
            "max_abs": self._max,
            "mean_square": self._squares / entries,
            "bias": self._sum / entries,
        }

    def picture(self) -> Picture:
        least = 0.0 if self._is_complex else -1.0
        counts, edges = np.zeros(BINS, np.int64), np.linspace(least, 1.0, BINS + 1)
        for mirrored, tile in self._tiles:
            # As parts of the largest: the bins of tiny errors themselves may be narrower than numbers lie.
            values = (np.abs(tile) if self._is_complex else tile) / np.float64(self._max or 1.0)
            # Rounding to float32 takes the largest out of the range.
            found, _ = np.histogram(np.clip(values, least, 1.0), BINS, (least, 1.0))
            counts += (2 if mirrored else 1) * found
        exact, estimate = self._scatter.tolist()
        return Picture(edges=(self._max * edges).tolist(), counts=counts.tolist(), exact=exact, estimate=estimate)


def _measured(
    feature_map: FeatureMap,
    rows: Rows,
    estimate: Estimate,
    pairs: tuple[Whole, Whole],
    norms: _Norms,
    pictured: bool,
) -> tuple[Figures, Picture | None]:
    """In a function of its own, so that one matrix of errors is let go before the next is made."""
    error = _Error(feature_map, rows, estimate, pairs)
    return error.figures(norms), error.picture() if pictured else None


def _exact_norms(feature_map: FeatureMap, rows: Rows) -> _Norms:
    n = rows.shape[0]
    tiles, squares = HermitianTiles(n, False), 0.0
    for block, columns in tile_places(n):
        exact = feature_map.exact_gram(rows[block], rows[columns])
        squares += (1 if block == columns else 2) * float(np.vdot(exact, exact))
        tiles.add(block, columns, exact)
    return _Norms(float(np.sqrt(squares)), tiles.spectral_norm())


def _of_monte_carlo(feature_map: FourierMap, rows: Rows, norms: _Norms, seed: int) -> Figures:
    """Of a map of as many Monte Carlo frequencies."""
    changes = {"sampler": MonteCarlo(kind="monte_carlo"), "s": feature_map.n_frequencies, "seed": seed}
    spec = feature_map.spec.model_copy(update=changes)
    made = FourierMap(spec, FourierMap.build(spec).arrays)
    return _Error(made, rows, _estimate_of(made, Estimator.map, rows), row_pairs(rows.shape[0], 0, 0)).figures(norms)


def _baseline(found: list[Figures]) -> Baseline:
    columns = {name: np.array([figures[name] for figures in found]) for name in found[0]}
    return Baseline(
        seeds=len(found),
        mean={name: float(values.mean()) for name, values in columns.items()},
        sd={name: float(values.std(ddof=1)) for name, values in columns.items()} if len(found) > 1 else None,
    )


def _ratios(figures: Figures, baseline: Figures) -> dict[str, float | None]:
    return {name: figures[name] / baseline[name] if baseline[name] else None for name in _SIZES}
