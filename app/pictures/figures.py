"""Rendering of a `Drawing` by Matplotlib, as SVG and as PNG."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby, pairwise
from math import ceil, inf, log10
from threading import Lock
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from app.core.drawing import Beyond, Curve, Density, Drawing, Histogram, Mark, Panel, Scale, Star

# No figure uses this colour: in an SVG, the page's own colour replaces it at the end. In a PNG it is black.
INK = "#010203"
_STYLE = "<style>svg{color:#222}@media(prefers-color-scheme:dark){svg{color:#ddd}}</style>"
# A rectangular cell as Matplotlib writes it, with rounded numbers: left, bottom, right and top.
_CELL = re.compile(r"M (\S+) (\S+) \nL (\S+) \2 \nL \3 (\S+) \nL \1 \4 \nz\n?")
_PATH = re.compile(r'(?<= d=")[^"]+')
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
# 144 dots per inch: sharp on a screen of two dots per pixel, and a megapixel per figure or less.
_DOTS_PER_INCH = 144
_PANEL_WIDTH, _LEGEND_WIDTH, _MARGIN, _TITLE_HEIGHT = 5.0, 2.4, 1.0, 0.35
_FEW_DECADES = 2.5
# Longest end of an axis: Matplotlib computes with numbers somewhat beyond it.
_MOST = 1e300
rcParams.update(
    {
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "bochner",  # the same picture has the same bytes
        "font.family": "sans-serif",
        "font.size": 10,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.titlesize": 11,
        "legend.frameon": False,
        "legend.fontsize": 8,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    }
)
# Matplotlib draws in one thread only, so figures are drawn one after the other.
_ONE_AT_A_TIME = Lock()


def svg(drawing: Drawing) -> bytes:
    """Return the drawing as an SVG document; always the same bytes for the same drawing."""
    buffer = io.StringIO()
    with _draw_figure(drawing) as figure:
        figure.savefig(buffer, format="svg", bbox_inches="tight", transparent=True, metadata={"Date": None})
    document = _PATH.sub(_short, buffer.getvalue().replace(INK, "currentColor"))
    inside = document.index(">", document.index("<svg")) + 1
    return (document[:inside] + _STYLE + document[inside:]).encode()


def png(drawing: Drawing) -> bytes:
    """Return the drawing as a PNG image on white; always the same bytes for the same drawing."""
    buffer = io.BytesIO()
    with _draw_figure(drawing) as figure:
        figure.savefig(buffer, format="png", bbox_inches="tight", dpi=_DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def _short(path: re.Match[str]) -> str:
    """Shorten a path: round to tenths of a point, which is invisible on a screen, and write cells by their sides."""
    return _CELL.sub(r"M\1 \2H\3V\4H\1z", _NUMBER.sub(lambda one: f"{float(one[0]):.1f}", path[0]))


@contextmanager
def _draw_figure(drawing: Drawing) -> Iterator[Figure]:
    """Draw the figure, for the duration of a with block."""
    n_rows, n_columns = len(drawing.rows), max(map(len, drawing.rows))
    beside = any(panel.legend_beside for panels in drawing.rows for panel in panels)
    width = _PANEL_WIDTH * n_columns + _MARGIN + _LEGEND_WIDTH * beside
    height = drawing.row_height * n_rows + _TITLE_HEIGHT * (drawing.title is not None)
    with _ONE_AT_A_TIME, np.errstate(over="ignore", invalid="ignore"):  # margins of ends near the largest number
        figure = Figure(figsize=(width, height), layout="constrained")
        every: list[list[Axes]] = figure.subplots(n_rows, n_columns, squeeze=False).tolist()
        for panels, row in zip(drawing.rows, every, strict=True):
            for panel, axes in zip(panels, row, strict=False):
                _draw(panel, axes)
            for axes in row[len(panels) :]:
                axes.remove()
        if drawing.title is not None:
            figure.suptitle(drawing.title, parse_math=False)
        yield figure


def _draw(panel: Panel, axes: Axes) -> None:
    for scale, set_scale in ((panel.x_scale, axes.set_xscale), (panel.y_scale, axes.set_yscale)):
        if scale != "linear":
            set_scale("log", base=10 if scale == "log" else 2)
    for mark in panel.marks:
        _draw_mark(mark, axes)
    if panel.y_range is not None:
        axes.set_ylim(panel.y_range)
    for axis, set_ends in ((axes.xaxis, axes.set_xlim), (axes.yaxis, axes.set_ylim)):
        ends = axis.get_view_interval()
        if np.abs(ends).max() > _MOST:
            set_ends(*np.clip(ends, -_MOST, _MOST))
    _number(panel.x_scale, axes.xaxis)
    _number(panel.y_scale, axes.yaxis)
    # A dollar sign in a name must not begin a formula.
    axes.set_xlabel(panel.x_label, parse_math=False)
    axes.set_ylabel(panel.y_label, parse_math=False)
    if panel.title is not None:
        axes.set_title(panel.title, parse_math=False)
    if axes.get_legend_handles_labels()[0]:
        beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if panel.legend_beside else {}
        for text in axes.legend(**beside).get_texts():
            text.set_parse_math(False)


class _FiniteLogLocator(LogLocator):
    """Ticks of a logarithmic axis. Matplotlib's own may lie beyond the ends, and beyond the largest number."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        ticks = np.asarray(super().tick_values(vmin, vmax))
        return ticks[np.isfinite(ticks)]


def _number(scale: Scale, axis: Axis) -> None:
    """Set few numbers along a logarithmic axis, in plain digits if it spans few decades."""
    if scale == "linear":
        return
    low, high = axis.get_view_interval()
    decades = log10(high) - log10(low) if low > 0 else inf
    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(_FiniteLogLocator())
    if scale == "log2":
        axis.set_major_locator(_FiniteLogLocator(base=2))
        axis.set_major_formatter(StrMethodFormatter("{x:.6g}"))
    elif decades < _FEW_DECADES:
        axis.set_major_locator(_FiniteLogLocator(subs=(1, 2, 5) if decades > 1 else range(1, 10)))
        axis.set_major_formatter(StrMethodFormatter("{x:.6g}"))


# Mid-tones with a contrast of 3 or more to white and to black, which the colour-blind can tell apart.
COLOURS = (
    *("#1f83c9", "#d1650c", "#24915a", "#b65aa5", "#9a7d0a", "#5a7be0", "#c9424a", "#6d7f86"),
    *("#9b5a4a", "#0c8a94", "#cf3f93", "#6f8a1f", "#8456c9", "#b0703c", "#4a7f70", "#a3607c"),
)
GREY = "#808080"
MARKERS = "osD^vPX*"
_WITH_MARKERS = ("joined", "markers")
_LINES = {"joined": "-", "line": "-", "dashed": "--", "markers": ""}
# Number of shades of a density, each from at least twice the count of the one before; opacity of the faintest, which is
# visible on white and on black.
_SHADES, _FAINTEST = 6, 0.18


def _draw_mark(mark: Mark, axes: Axes) -> None:
    match mark:
        case Histogram():
            colour, alpha = _colour(mark.colour), 0.75 if mark.filled else 1.0
            axes.stairs(mark.heights, mark.edges, color=colour, label=mark.label, fill=mark.filled, alpha=alpha)
        case Density():
            _draw_density(mark, axes)
        case Star():
            look: dict[str, Any] = {"markersize": 15, "markerfacecolor": "none", "color": INK}
            axes.plot([mark.x], [mark.y], "*", **look, label=mark.label, zorder=5, clip_on=False)
        case Beyond():
            colour, at = _colour(mark.colour), 1.0 if mark.above else 0.0
            there = axes.get_xaxis_transform()
            axes.plot([mark.x], [at], "^" if mark.above else "v", color=colour, transform=there, clip_on=False)
            offset = (8, -6 if mark.above else 2)
            axes.annotate(mark.says, (mark.x, at), offset, there, "offset points", fontsize=7, parse_math=False)
        case Curve():
            size = 4 if mark.style in _WITH_MARKERS else 12
            style: dict[str, Any] = {"linestyle": _LINES[mark.style], "marker": _marker(mark), "markersize": size}
            style |= {"color": _colour(mark.colour), "linewidth": 1.3, "elinewidth": 0.9, "capsize": 2}
            axes.errorbar(mark.x, mark.y, mark.deviations, label=mark.label, **style)


def _marker(curve: Curve) -> str:
    """Return the marker of a curve: of a line none, or a short stroke if one x for all points makes it invisible."""
    if curve.style in _WITH_MARKERS:
        return MARKERS[curve.marker % len(MARKERS)]
    return "_" if len({place for place in curve.x if not np.isnan(place)}) == 1 else ""


def _draw_density(mark: Density, axes: Axes) -> None:
    """Draw the cells of each shade as one path; the first, middle and last shade have an entry in the legend."""
    largest = max(map(max, mark.counts))
    colour = _colour(mark.colour)
    factor = max(2.0, largest ** (1 / _SHADES))
    ends = [factor**number for number in range(_SHADES + 1) if factor**number <= largest] + [np.inf]
    shades = [(cells, low) for low, high in pairwise(ends) if (cells := [*_stretches(mark, low, high)])]
    for number, (cells, low) in enumerate(shades):
        alpha = _FAINTEST + (1 - _FAINTEST) * (number / (len(shades) - 1) if len(shades) > 1 else 1.0)
        corners = ([(a, c), (b, c), (b, d), (a, d), (a, c)] for a, b, c, d in cells)
        path = Path.make_compound_path(*(Path(four, closed=True) for four in corners))
        is_named = number in (0, len(shades) // 2, len(shades) - 1)
        said = f"{mark.label} in a cell: {ceil(low):,} or more" if is_named else "_"
        axes.add_patch(PathPatch(path, facecolor=colour, alpha=alpha, linewidth=0, label=said, gid=f"shade-{number}"))
    axes.set_xlim(mark.x_edges[0], mark.x_edges[-1])
    axes.set_ylim(mark.y_edges[0], mark.y_edges[-1])


def _stretches(mark: Density, low: float, high: float) -> Iterator[tuple[float, float, float, float]]:
    """Yield stretches of neighbouring cells with counts from low to below high: left, right, bottom and top."""
    for row, (bottom, top) in zip(mark.counts, pairwise(mark.y_edges), strict=True):
        end = 0
        for is_inside, cells in groupby(row, lambda count: low <= count < high):
            start, end = end, end + len([*cells])
            if is_inside:
                yield mark.x_edges[start], mark.x_edges[end], bottom, top


def _colour(number: int | None) -> str:
    return GREY if number is None else COLOURS[number % len(COLOURS)]
