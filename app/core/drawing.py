"""Figures as plain data: the marks and where they are. `app.pictures` draws them and does not know what they mean.

The colour of a mark is a number: marks with the same number have the same colour. None is grey, for marks that serve as
a comparison.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Matrix

Scale = Literal["linear", "log", "log2"]
CELLS = 2200
"""Most cells of all densities of a figure together; a cell takes up to about 30 bytes of an SVG document."""


class Curve(NamedTuple):
    """Markers joined by lines, or only markers, or only a line."""

    x: Sequence[float]
    y: Sequence[float]
    label: str
    """Name of the curve in the legend."""
    colour: int | None = 0
    style: Literal["joined", "line", "dashed", "markers"] = "joined"
    deviations: Sequence[float] | None = None
    """Half the lengths of the error bars, if there are any."""
    marker: int = 0
    """Number of the marker symbol: tells curves of the same colour apart."""


class Density(NamedTuple):
    """Two-dimensional histogram; cells with more points are darker."""

    x_edges: Sequence[float]
    y_edges: Sequence[float]
    counts: Sequence[Sequence[int]]
    """Number of points in each cell: a list along x for every interval of y."""
    label: str
    """Name in the legend of the points that are counted."""
    colour: int | None = 0


class Histogram(NamedTuple):
    """Histogram as steps, filled or outlined."""

    edges: Sequence[float]
    heights: Sequence[float]
    label: str
    colour: int | None = 0
    filled: bool = True


class Star(NamedTuple):
    """Star that marks the most important point, in the colour of the text."""

    x: float
    y: float
    label: str


class Beyond(NamedTuple):
    """Arrow at the edge of the axes, for a value outside their range."""

    x: float
    above: bool
    says: str
    """Text beside the arrow: the value."""
    colour: int | None = 0


Mark = Curve | Density | Histogram | Star | Beyond


class Panel(NamedTuple):
    """One pair of axes and the marks on it."""

    marks: Sequence[Mark]
    x_label: str
    y_label: str
    title: str | None = None
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    y_range: tuple[float, float] | None = None
    """Ends of the y axis; None to fit the marks."""
    legend_beside: bool = False
    """Whether the legend is beside the axes, as a long one would cover the marks."""


class Drawing(NamedTuple):
    """Figure: rows of panels."""

    rows: Sequence[Sequence[Panel]]
    row_height: float = 4.0
    """Height of each row in inches."""
    title: str | None = None
    """Title above all panels."""


def density(x: Matrix, y: Matrix, label: str, colour: int | None = 0, of: int = 1) -> Density:
    """Return the density of points (x_i, y_i), one of `of` in a figure, with as many cells along x as along y."""
    side = int((CELLS / of) ** 0.5)
    counts, x_edges, y_edges = np.histogram2d(x, y, side, [_reach(x), _reach(y)])
    return Density(x_edges.tolist(), y_edges.tolist(), counts.T.astype(np.int64).tolist(), label, colour)


def _reach(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the range of values, widened if it is too narrow to be divided into cells."""
    least, most = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if most - least > 1e-9 * max(abs(least), abs(most)):
        return least, most
    half = max(abs(least), abs(most)) / 2 or 0.5
    return least - half, most + half


# Longest name that fits above a figure.
_MOST_LETTERS = 48
_NUMBERS = ("nu", "alpha", "degree", "p", "length_scale", "gamma")
NAMED_OF_KERNELS = {"kind", *_NUMBERS}
"""Fields of kernels that display names are made of; numeric fields only if they hold one number."""
_SIZES = ("level", "degree", "points_per_dim")
NAMED_OF_SAMPLERS = {"kind", "base", *_SIZES}
"""Fields of samplers that display names are made of."""


def kernel_name(kernel: dict[str, Any]) -> str:
    """Return a name such as "gaussian, length_scale 5": the kernel's kind and its numbers, without lists of numbers."""
    numbers = [f"{name} {kernel[name]:.3g}" for name in _NUMBERS if isinstance(kernel.get(name), int | float)]
    return ", ".join([str(kernel["kind"]), *numbers])


def sampler_name(sampler: dict[str, Any]) -> str:
    """Return a name such as "moment_matching over halton": kind, size of a rule, and kind of the base."""
    size = next((f" {sampler[name]}" for name in _SIZES if sampler.get(name)), "")
    base = sampler.get("base")
    return f"{sampler['kind']}{size}" + (f" over {base['kind']}" if base else "")


def map_name(name: str, kernel: dict[str, Any], sampler: dict[str, Any], s: int) -> str:
    """Return the title of figures of a map: its name, kernel, sampler and size."""
    return f"{shorten(name)}: {kernel_name(kernel)}; {sampler_name(sampler)}, s = {s:,}"


def shorten(name: str) -> str:
    """Return a name, with its middle left out if it is long."""
    half = _MOST_LETTERS // 2
    return name if len(name) <= _MOST_LETTERS else f"{name[:half]}…{name[-half:]}"
