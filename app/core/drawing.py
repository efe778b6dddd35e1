"""Pictures as plain data: what is drawn where. `app.pictures` draws them and knows nothing of what they mean.

The colour of a mark is a number: marks of one number have one colour; None is grey, for what others are compared with.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix

Scale = Literal["linear", "log", "log2"]
CELLS = 2200
"""Cells of all densities of a drawing together: each takes some 30 bytes of an SVG document at the most."""


class Curve(NamedTuple):
    """Markers joined by lines, or one of both."""

    x: Sequence[float]
    y: Sequence[float]
    label: str
    """Its name in the legend."""
    colour: int | None = 0
    style: Literal["joined", "line", "dashed", "markers"] = "joined"
    deviations: Sequence[float] | None = None
    """Half the lengths of error bars, if there are any."""
    marker: int = 0
    """The number of its marker: tells curves of one colour apart."""


class Density(NamedTuple):
    """Cells that are the darker, the more is in them."""

    x_edges: Sequence[float]
    y_edges: Sequence[float]
    counts: Sequence[Sequence[int]]
    """For each stretch of y, what is in the cells along x."""
    label: str
    """What is counted, for the legend."""
    colour: int | None = 0


class Histogram(NamedTuple):
    """Steps, filled or outlined."""

    edges: Sequence[float]
    heights: Sequence[float]
    label: str
    colour: int | None = 0
    filled: bool = True


class Star(NamedTuple):
    """The one place to look at, in the colour of the ink."""

    x: float
    y: float
    label: str


class Beyond(NamedTuple):
    """An arrow at the edge of the picture, for a value that lies beyond it."""

    x: float
    above: bool
    says: str
    """Its value, which is written beside it."""
    colour: int | None = 0


Mark = Curve | Density | Histogram | Star | Beyond


class Panel(NamedTuple):
    """One pair of axes with what is drawn on it."""

    marks: Sequence[Mark]
    x_label: str
    y_label: str
    title: str | None = None
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    y_range: tuple[float, float] | None = None
    """Ends of the y axis; None for those of the marks."""
    legend_beside: bool = False
    """Whether the legend is beside the axes: a long one would cover the marks."""


class Drawing(NamedTuple):
    """Panels in rows."""

    rows: Sequence[Sequence[Panel]]
    row_height: float = 4.0
    """Height of each row, in inches."""
    title: str | None = None
    """Above all panels."""


def density(x: Matrix, y: Matrix, label: str, colour: int | None = 0, of: int = 1) -> Density:
    """A density of points (x_i, y_i), one of `of` in a drawing, on as many cells along one side as along the other."""
    side = int((CELLS / of) ** 0.5)
    counts, x_edges, y_edges = np.histogram2d(x, y, side, [_reach(x), _reach(y)])
    return Density(x_edges.tolist(), y_edges.tolist(), counts.T.astype(np.int64).tolist(), label, colour)


def _reach(values: NDArray[np.float64]) -> tuple[float, float]:
    """The range of values, widened where it is too narrow for cells to have a width."""
    least, most = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if most - least > 1e-9 * max(abs(least), abs(most)):
        return least, most
    half = max(abs(least), abs(most)) / 2 or 0.5
    return least - half, most + half
