"""How far a map's Gram matrix is from the kernel's, compared with that of Monte Carlo frequencies."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, cast, get_args

import numpy as np
from pydantic import Field, with_config
from typing_extensions import TypedDict

from app.core.arrays import Matrix, Rows
from app.core.building import Building
from app.core.diagnostics.base import (
    DRAWN_PAIRS,
    Diagnostic,
    Finding,
    GivenRows,
    Pairs,
    Seed,
    Takes,
    map_seeds,
    row_pairs,
)
from app.core.diagnostics.error_matrix import (
    BINS,
    TILE_ROWS,
    ErrorMatrix,
    Estimate,
    Estimator,
    Figures,
    Sketch,
    estimates_of,
    exact_norms,
    tile_places,
)
from app.core.drawing import Curve, Density, Drawing, Histogram, Panel
from app.core.errors import InvalidInput
from app.core.maps import BaseSpec, FeatureMap, family_of, make_map
from app.core.model import MM, QMC
from app.core.progress import Parts, Progress, keeping_nothing, state_before

MOST_ROWS = 20_000

_Size = Literal["relative_frobenius", "relative_spectral", "max_abs", "mean_square"]
# The figures that are sizes, so that ratios to those of a baseline make sense.
_SIZES: tuple[_Size, ...] = get_args(_Size)
# Matrices of the size of a tile, in float64, that are held while a tile is computed.
_TILES_AT_WORK = 6


Norms = tuple[float, float, Sequence[float]]
"""Frobenius and spectral norm of the exact matrix, and the sum of squares of each row."""


class Measured(TypedDict):
    """Measurements of an estimate, as in JSON."""

    figures: Figures
    sketch: Sketch
    density: list[Any]
    """Fields of a `Density`: the errors of some pairs against their kernel."""
    interval: tuple[float, float]
    """95 % interval of the relative Frobenius error on other rows."""


@with_config(use_attribute_docstrings=True)
class Baseline(TypedDict):
    """Figures of maps with as many Monte Carlo frequencies."""

    seeds: int
    """Number of Monte Carlo maps."""
    mean: Figures
    """Means over the maps."""
    sd: Figures | None
    """Sample standard deviations over the maps; null for one map."""


@with_config(use_attribute_docstrings=True)
class GramErrors(TypedDict):
    """Errors of the Gram matrix of the rows.

    In the form complex, the imaginary part counts as error too, as the kernel has none.
    """

    rows: int
    """Number of rows of the Gram matrix."""
    form: str | None
    """Form that was measured; null for hashes."""
    estimators: dict[str, Figures]
    """Figures of each estimator."""
    intervals: dict[str, tuple[float, float]]
    """95 % interval of relative_frobenius for each estimator, on the same number of other rows of the same source."""
    monte_carlo: Baseline | None
    """Monte Carlo baseline; null for hashes, and for 0 seeds."""
    ratios: dict[str, dict[str, float | None]]
    """Figures of each estimator divided by the Monte Carlo means; null where the mean is 0."""


class Gram(Diagnostic):
    """Errors of the Gram matrix of rows, compared with those of maps with as many Monte Carlo frequencies.

    They are the errors relative to the exact matrix in the Frobenius and the spectral norm, the largest error, the mean
    square, and the bias. From about 4,850 rows on, with the form complex from 1,600, the request needs so much memory
    that it runs as a job from the start.

    Choose when:
        Use it first: on your own rows it shows how accurate the map is, and whether another sampler would be better.
    """

    kind = "gram"
    takes = Takes.rows
    answer = GramErrors
    draws = True
    memory_advice = "seeds 0 leaves out the Monte Carlo maps, estimators map the moments of all frequencies"
    source = f"{QMC}, section 6; control variates: {MM}, section 3, (10)"

    estimators: Annotated[
        tuple[Annotated[Estimator, Field(strict=False)], ...], Field(min_length=1, max_length=3, fail_fast=True)
    ] = (Estimator.map,)
    """map: The inner product of the features. cv1: With the first moment of the frequencies as a control. It corrects
    the imaginary part of the form complex; in the real forms the best coefficient is 0, and cv1 is the map. cv2: With
    the first two moments as controls; to first order what moment matching attains with features.
    """
    seeds: Annotated[int, Field(ge=0, le=20)] = 5
    """Number of Monte Carlo maps to compare with."""
    seed: Seed = 0

    def check(self, feature_map: FeatureMap, rows: GivenRows) -> None:
        """Refuse too few and too many rows."""
        n = rows["vectors"].shape[0]
        if not 2 <= n <= MOST_ROWS:
            raise InvalidInput(f"expected 2 to {MOST_ROWS} rows, got {n}", "/vectors")

    def memory_bytes(self, feature_map: FeatureMap, rows: GivenRows) -> int:
        """Return the memory of one triangle of an n×n matrix and of the work on a tile, beside features of a tile."""
        vectors = rows["vectors"]
        n, input_dim, tile = vectors.shape[0], feature_map.spec.input_dim, vectors[:TILE_ROWS]
        parts, side = 2 if feature_map.gram_dtype.kind == "c" else 1, tile.shape[0]
        matrices = parts * ((n + side) * n // 2 * 4 + _TILES_AT_WORK * 8 * side**2)
        controls = 0
        if set(self.estimators) - {Estimator.map}:
            # Rows made dense, two matrices of second moments, and frequencies that are computed on demand, with copies.
            computed = 24 * feature_map.n_frequencies * input_dim if "frequencies" in feature_map.computed else 0
            controls = 8 * input_dim * (n + 2 * input_dim) + computed
        drawn, baseline = 0, feature_map.baseline(0)
        if self.seeds and baseline is not None:
            its_family = family_of(baseline.sampler)
            drawn = its_family.drawing_bytes(baseline) + 2 * its_family.frozen_bytes(baseline)
        return int(matrices + feature_map.kernel.exact_bytes(tile, tile) + controls + drawn)

    def run(self, feature_map: FeatureMap, rows: GivenRows, progress: Progress, threads: int) -> Finding[GramErrors]:
        """Measure errors of the Gram matrix of the rows, 2 to `MOST_ROWS`.

        K̂ is the result of the map's `gram`, in the map's dtype; its errors are summed up in float64. At most one
        triangle of one n×n matrix is held at a time, in float32; the spectral norm is computed from it.

        Hashes have no Monte Carlo baseline: they are independent draws themselves, and `variance` has their error.

        Raises:
            InvalidInput: the kernel is undefined for rows, control variates are not defined, or errors leave float32.
        """
        vectors = rows["vectors"]
        n = vectors.shape[0]
        parts, tiles = Parts(progress), len([*tile_places(n)])
        feature_map.check_rows(vectors, "/vectors", partial(progress.checkpoint, parts.restored_state))
        estimates = estimates_of(
            feature_map, self.estimators, vectors, partial(progress.before_long_call, parts.restored_state)
        )
        baselines = {seed: feature_map.baseline(seed) for seed in map_seeds(self.seed, self.seeds)}
        compared = {str(seed): spec for seed, spec in baselines.items() if spec is not None}
        names = ["exact", *estimates, *compared]

        def once(name: str, measure: Callable[[Progress], Any]) -> Any:
            before = names.index(name) * tiles
            return parts.once(name, measure, lambda tile: progress.report(before + tile, len(names) * tiles))

        norms = once("exact", partial(exact_norms, feature_map, vectors))
        pairs = row_pairs(n, DRAWN_PAIRS, self.seed)
        measured: dict[str, Measured] = {
            name: once(name, partial(_measure_estimate, feature_map, vectors, estimate, pairs, norms, len(estimates)))
            for name, estimate in estimates.items()
        }
        figures = {name: one["figures"] for name, one in measured.items()}
        found: list[tuple[Figures, Sketch]] = [
            once(name, partial(_of_baseline, spec, vectors, pairs, norms, threads)) for name, spec in compared.items()
        ]
        baseline = _baseline([one for one, _ in found]) if found else None
        answer = GramErrors(
            rows=n,
            form=None if feature_map.form is None else feature_map.form.value,
            estimators=figures,
            intervals={name: one["interval"] for name, one in measured.items()},
            monte_carlo=baseline,
            ratios={name: _ratios(of, baseline["mean"]) for name, of in figures.items()} if baseline else {},
        )
        return Finding(answer, drawing(n, answer["form"], measured, [sketch for _, sketch in found]))


def _measure_estimate(
    feature_map: FeatureMap, vectors: Rows, estimate: Estimate, pairs: Pairs, norms: Norms, of: int, progress: Progress
) -> Measured:
    """Return figures and sketches of an estimate; its error matrix is freed before that of the next is made."""
    error = ErrorMatrix(feature_map, vectors, estimate, pairs, progress)
    frobenius, spectral, of_rows = norms
    return Measured(
        figures=error.figures(frobenius, spectral),
        sketch=error.sketch(),
        density=[*error.density(of)],
        interval=error.interval(frobenius, of_rows),
    )


def _of_baseline(
    spec: BaseSpec, vectors: Rows, pairs: Pairs, norms: Norms, threads: int, progress: Progress
) -> tuple[Figures, Sketch]:
    # The build has no state: the map is built again after an interruption, and the state stays that of the matrix.
    baseline = make_map(spec, Building(threads, keeping_nothing(progress, partial(state_before, progress))))
    estimate = estimates_of(baseline, [Estimator.map], vectors)[Estimator.map]
    error = ErrorMatrix(baseline, vectors, estimate, pairs, progress)
    return error.figures(*norms[:2]), error.sketch()


def _baseline(found: list[Figures]) -> Baseline:
    values = np.array([[*figures.values()] for figures in found])

    def figures(numbers: Matrix) -> Figures:
        return cast(Figures, dict(zip(found[0], numbers.tolist(), strict=True)))

    deviations = figures(values.std(axis=0, ddof=1)) if len(found) > 1 else None
    return Baseline(seeds=len(found), mean=figures(values.mean(axis=0)), sd=deviations)


def _ratios(figures: Figures, baseline: Figures) -> dict[str, float | None]:
    return {name: figures[name] / baseline[name] if baseline[name] else None for name in _SIZES}


def drawing(rows: int, form: str | None, measured: Mapping[str, Measured], monte_carlo: Sequence[Sketch]) -> Drawing:
    """Plot for each estimator a histogram of its errors and its errors by the kernel, both beside Monte Carlo maps.

    Args:
        rows: number of rows of the matrix.
        form: the form that was measured, if there is one.
        measured: measurements of each estimator.
        monte_carlo: sketches of maps with as many Monte Carlo frequencies; the figure has their mean.
    """
    return Drawing(
        [
            (
                _histogram(rows, form, name, one, monte_carlo, colour),
                _by_kernel(form, name, one["sketch"], Density(*one["density"]), monte_carlo, colour),
            )
            for colour, (name, one) in enumerate(measured.items())
        ],
        row_height=3.6,
    )


def _histogram(
    rows: int, form: str | None, name: str, one: Measured, monte_carlo: Sequence[Sketch], colour: int
) -> Panel:
    """Plot the shares of the matrix entries by their error. Bins reach as far as any error on the panel."""
    edges = max((sketch["edges"] for sketch in (one["sketch"], *monte_carlo)), key=lambda edges: edges[-1])
    marks = [Histogram(edges, _shares(one["sketch"], edges).tolist(), name, colour)]
    if monte_carlo:
        mean = np.mean([_shares(sketch, edges) for sketch in monte_carlo], axis=0)
        marks.append(Histogram(edges, mean.tolist(), _monte_carlo_label(monte_carlo), None, filled=False))
    error = one["figures"]["relative_frobenius"]
    return Panel(
        marks,
        x_label="|estimate − exact|" if form == "complex" else "estimate − exact",
        y_label="share of the matrix",
        title=f"{name}: relative Frobenius error {error:.3g}, {rows:,} rows",
        y_scale="log",
    )


def _shares(sketch: Sketch, edges: Sequence[float]) -> Matrix:
    """Return the shares of the entries in bins between other edges, which reach as far or farther."""
    total = sum(sketch["counts"])
    if sketch["edges"][-1] == edges[-1]:
        return np.array(sketch["counts"]) / total
    shares: Matrix = np.zeros(BINS)
    if not sketch["edges"][-1] > 0:
        shares[int(np.searchsorted(edges, 0.0, side="right")) - 1] = 1.0
        return shares
    return np.diff(np.interp(edges, sketch["edges"], np.concatenate([[0], np.cumsum(sketch["counts"])]) / total))


def _by_kernel(
    form: str | None, name: str, sketch: Sketch, density: Density, monte_carlo: Sequence[Sketch], colour: int
) -> Panel:
    """Plot the errors of some pairs against their kernel, and their root mean square above and below 0."""
    pairs = sum(map(sum, density.counts))
    marks: list[Density | Curve] = [density._replace(colour=colour)]
    curves: list[tuple[list[float], Matrix, str, int | None]]
    curves = [(sketch["kernel"], np.array(sketch["rms"]), f"± root mean square, {name}", colour)]
    if monte_carlo:
        # All maps have the same pairs, and so the same kernels.
        rms = np.sqrt(np.mean([np.square(one["rms"]) for one in monte_carlo], axis=0))
        curves.append((monte_carlo[0]["kernel"], rms, f"± root mean square, {_monte_carlo_label(monte_carlo)}", None))
    for kernel, rms, label, one_colour in curves:
        x, y = [*kernel, np.nan, *kernel], [*rms, np.nan, *-rms]
        marks.append(Curve(x, y, label, one_colour, "dashed" if one_colour is None else "line"))
    reach = max(abs(density.y_edges[0]), abs(density.y_edges[-1]), *(float(rms.max()) for _, rms, _, _ in curves))
    return Panel(
        marks,
        x_label="exact kernel",
        y_label=("Re estimate" if form == "complex" else "estimate") + " − exact",
        title=f"{name}: {pairs:,} {'pair' if pairs == 1 else 'pairs'} of different rows",
        y_range=(-1.05 * reach, 1.7 * reach),  # with room for the legend
    )


def _monte_carlo_label(monte_carlo: Sequence[Sketch]) -> str:
    n = len(monte_carlo)
    return f"Monte Carlo, mean of {n} maps" if n > 1 else "Monte Carlo, one map"
