"""How far a map's Gram matrix is from the kernel's, beside that of Monte Carlo frequencies."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypedDict

import numpy as np

from app.core.arrays import Rows
from app.core.diagnostics.control_variates import Estimator
from app.core.diagnostics.error_matrix import ErrorMatrix, Estimate, Figures, Norms, Picture, estimates_of, exact_norms
from app.core.diagnostics.hermitian_tiles import tile_places
from app.core.diagnostics.random_pairs import Whole, map_seeds, row_pairs
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap, made
from app.core.maps.base_spec import BaseSpec
from app.core.progress import Parts, Progress

MOST_ROWS = 20_000
SCATTER_PAIRS = 2000

_SIZES = ("relative_frobenius", "relative_spectral", "max_abs", "mean_square")
"""The figures that are sizes, and so have a ratio to another's."""


class Baseline(TypedDict):
    """Figures of maps of as many Monte Carlo frequencies, over seeds; sd of the sample, None for one seed."""

    seeds: int
    mean: Figures
    sd: Figures | None


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


def gram_errors(
    feature_map: FeatureMap,
    rows: Rows,
    estimators: Sequence[Estimator] = (Estimator.map,),
    *,
    seeds: int = 5,
    seed: int = 0,
    pictures: bool = True,
    progress: Progress | None = None,
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
        progress: told after every tile, and given what was measured of each matrix.
        pictures: whether to find what to draw as well; without, `pictures` of the answer is empty.

    Raises:
        InvalidInput: too few or too many rows or without a kernel, meaningless control variates, errors out of float32.
    """
    n = rows.shape[0]
    if not 2 <= n <= MOST_ROWS:
        raise InvalidInput(f"{n} rows came; a Gram matrix is measured on 2 to {MOST_ROWS}", "/vectors")
    feature_map.check_rows(rows, "/vectors")
    estimates = estimates_of(feature_map, estimators, rows)
    baselines = {its_seed: feature_map.baseline(its_seed) for its_seed in map_seeds(seed, seeds)}
    compared = {its_seed: spec for its_seed, spec in baselines.items() if spec is not None}
    progress = progress or Progress()
    parts, tiles = Parts(progress), _Tiles(progress, n, 1 + len(estimates) + len(compared))
    norms = Norms(*parts.once("exact", lambda: [*exact_norms(feature_map, rows, tiles.one_more)]))
    tiles.end_matrix()
    figures: dict[str, Figures] = {}
    drawn: dict[str, Picture] = {}
    pairs = row_pairs(n, SCATTER_PAIRS if pictures else 0, seed)
    for estimator, estimate in estimates.items():
        measure = partial(_measured, feature_map, rows, estimate, pairs, norms, pictures, tiles.one_more)
        figures[estimator.value], picture = parts.once(estimator.value, measure)
        if picture is not None:
            drawn[estimator.value] = picture
        tiles.end_matrix()
    found = []
    for its_seed, spec in compared.items():
        of_seed = partial(_of_baseline, spec, rows, norms, tiles.one_more)
        found.append(parts.once(str(its_seed), of_seed))
        tiles.end_matrix()
    baseline = _baseline(found) if found else None
    return GramErrors(
        rows=n,
        form=None if feature_map.form is None else feature_map.form.value,
        estimators=figures,
        monte_carlo=baseline,
        ratios={name: _ratios(of, baseline["mean"]) for name, of in figures.items()} if baseline else {},
        pictures=drawn,
    )


class _Tiles:
    """Tells how many tiles of all matrices are done."""

    def __init__(self, progress: Progress, n: int, matrices: int) -> None:
        self._progress, self._each = progress, len(list(tile_places(n)))
        self._matrices = self._tiles = 0
        self._of = matrices * self._each

    def one_more(self) -> None:
        """Of the matrix that is measured."""
        self._tiles += 1
        self._progress.report(self._matrices * self._each + self._tiles, self._of)

    def end_matrix(self) -> None:
        """It is measured, or was known."""
        self._matrices, self._tiles = self._matrices + 1, 0
        self._progress.report(self._matrices * self._each, self._of)


def _measured(
    feature_map: FeatureMap,
    rows: Rows,
    estimate: Estimate,
    pairs: tuple[Whole, Whole],
    norms: Norms,
    pictured: bool,
    told: Callable[[], None],
) -> tuple[Figures, Picture | None]:
    """In a function of its own, so that one matrix of errors is let go before the next is made."""
    error = ErrorMatrix(feature_map, rows, estimate, pairs, told)
    return error.figures(norms), error.picture() if pictured else None


def _of_baseline(spec: BaseSpec, rows: Rows, norms: Norms, told: Callable[[], None]) -> Figures:
    baseline = made(spec)
    estimate = estimates_of(baseline, [Estimator.map], rows)[Estimator.map]
    return ErrorMatrix(baseline, rows, estimate, row_pairs(rows.shape[0], 0, 0), told).figures(norms)


def _baseline(found: list[Figures]) -> Baseline:
    columns = {name: np.array([figures[name] for figures in found]) for name in found[0]}
    return Baseline(
        seeds=len(found),
        mean={name: float(values.mean()) for name, values in columns.items()},
        sd={name: float(values.std(ddof=1)) for name, values in columns.items()} if len(found) > 1 else None,
    )


def _ratios(figures: Figures, baseline: Figures) -> dict[str, float | None]:
    return {name: figures[name] / baseline[name] if baseline[name] else None for name in _SIZES}
