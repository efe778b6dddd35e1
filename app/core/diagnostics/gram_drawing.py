"""The picture of the errors of a Gram matrix: how large they are, and of which kernels, beside Monte Carlo."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from app.core.arrays import Matrix
from app.core.diagnostics.error_matrix import BINS, Figures, Sketch
from app.core.drawing import Curve, Density, Drawing, Histogram, Panel


class Measured(TypedDict):
    """What was measured of an estimate, as JSON holds it."""

    figures: Figures
    sketch: Sketch
    density: list[Any]
    """The fields of a `Density`: the errors of some pairs against their kernel."""


def drawing(rows: int, form: str | None, measured: Mapping[str, Measured], monte_carlo: Sequence[Sketch]) -> Drawing:
    """A row for each estimator: a histogram of its errors, and its errors by the kernel; Monte Carlo maps beside both.

    Args:
        rows: how many the matrix is of.
        form: that was measured, if there is one.
        measured: what was measured of each estimator.
        monte_carlo: sketches of maps of as many Monte Carlo frequencies; the picture has their mean.
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
    """The shares of all entries of the matrix by their error. Bins reach as far as any error on the panel."""
    edges = max((sketch["edges"] for sketch in (one["sketch"], *monte_carlo)), key=lambda edges: edges[-1])
    marks = [Histogram(edges, _shares(one["sketch"], edges).tolist(), name, colour)]
    if monte_carlo:
        mean = np.mean([_shares(sketch, edges) for sketch in monte_carlo], axis=0)
        marks.append(Histogram(edges, mean.tolist(), _called(monte_carlo), None, filled=False))
    error = one["figures"]["relative_frobenius"]
    return Panel(
        marks,
        x_label="|estimate − exact|" if form == "complex" else "estimate − exact",
        y_label="share of the matrix",
        title=f"{name}: relative Frobenius error {error:.3g}, {rows:,} rows",
        y_scale="log",
    )


def _shares(sketch: Sketch, edges: Sequence[float]) -> Matrix:
    """The shares of the entries in bins between other edges, which reach as far or farther."""
    total = sum(sketch["counts"])
    if sketch["edges"][-1] == edges[-1]:
        return np.array(sketch["counts"]) / total
    shares: Matrix = np.zeros(BINS)
    if not sketch["edges"][-1] > 0:
        shares[int(np.searchsorted(edges, 0.0, side="right")) - 1] = 1.0
        return shares
    below = np.concatenate([[0], np.cumsum(sketch["counts"])]) / total
    return np.diff(np.interp(edges, sketch["edges"], below))


def _by_kernel(
    form: str | None, name: str, sketch: Sketch, density: Density, monte_carlo: Sequence[Sketch], colour: int
) -> Panel:
    """The errors of some pairs against their kernel; and their root mean square, above and below 0."""
    pairs = sum(map(sum, density.counts))
    marks: list[Density | Curve] = [density._replace(colour=colour)]
    curves: list[tuple[list[float], Matrix, str, int | None]]
    curves = [(sketch["kernel"], np.array(sketch["rms"]), f"± root mean square, {name}", colour)]
    if monte_carlo:
        # The kernels are those of the same pairs.
        rms = np.sqrt(np.mean([np.square(one["rms"]) for one in monte_carlo], axis=0))
        curves.append((monte_carlo[0]["kernel"], rms, f"± root mean square, {_called(monte_carlo)}", None))
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


def _called(monte_carlo: Sequence[Sketch]) -> str:
    n = len(monte_carlo)
    return f"Monte Carlo, mean of {n} maps" if n > 1 else "Monte Carlo, one map"
