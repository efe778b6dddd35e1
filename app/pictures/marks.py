"""The marks of a drawing on axes of Matplotlib."""

from collections.abc import Iterator
from itertools import pairwise
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from app.core.drawing import Beyond, Curve, Density, Histogram, Mark, Star

# Mid-tones that stand out from white and from black alike (contrast of 3 and more), told apart by the colour-blind.
COLOURS = (
    *("#1f83c9", "#d1650c", "#24915a", "#b65aa5", "#9a7d0a", "#5a7be0", "#c9424a", "#6d7f86"),
    *("#9b5a4a", "#0c8a94", "#cf3f93", "#6f8a1f", "#8456c9", "#b0703c", "#4a7f70", "#a3607c"),
)
GREY = "#808080"
MARKERS = "osD^vPX*"
_WITH_MARKERS = ("joined", "markers")
_LINES = {"joined": "-", "line": "-", "dashed": "--", "markers": ""}
# Shades of a density, each for twice the counts of the one before or more; the faintest can be seen on white and black.
_SHADES, _FAINTEST = 6, 0.18


def draw_mark(mark: Mark, axes: Axes, ink: str) -> None:
    """Draw one mark; `ink` is the colour of text."""
    match mark:
        case Histogram():
            colour, alpha = _colour(mark.colour), 0.75 if mark.filled else 1.0
            axes.stairs(mark.heights, mark.edges, color=colour, label=mark.label, fill=mark.filled, alpha=alpha)
        case Density():
            _draw_density(mark, axes)
        case Star():
            axes.plot(
                [mark.x],
                [mark.y],
                "*",
                markersize=15,
                markerfacecolor="none",
                color=ink,
                label=mark.label,
                zorder=5,
                clip_on=False,
            )
        case Beyond():
            colour, at = _colour(mark.colour), 1.0 if mark.above else 0.0
            there = axes.get_xaxis_transform()
            axes.plot([mark.x], [at], "^" if mark.above else "v", color=colour, transform=there, clip_on=False)
            offset = (8, -6 if mark.above else 2)
            axes.annotate(
                mark.says,
                (mark.x, at),
                xycoords=there,
                textcoords="offset points",
                xytext=offset,
                fontsize=7,
                parse_math=False,
            )
        case Curve():
            axes.errorbar(
                mark.x,
                mark.y,
                mark.deviations,
                label=mark.label,
                color=_colour(mark.colour),
                linestyle=_LINES[mark.style],
                marker=_marker(mark),
                markersize=4 if mark.style in _WITH_MARKERS else 12,
                linewidth=1.3,
                elinewidth=0.9,
                capsize=2,
            )


def _marker(curve: Curve) -> str:
    """The markers of a curve. Of a line whose points have one x nothing could be seen: each is a short stroke."""
    if curve.style in _WITH_MARKERS:
        return MARKERS[curve.marker % len(MARKERS)]
    return "_" if len({place for place in curve.x if not np.isnan(place)}) == 1 else ""


def _draw_density(mark: Density, axes: Axes) -> None:
    """A path for each shade, of all its cells, with an entry of the legend."""
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
    """Stretches of neighbouring cells with counts from low up to high: left, right, bottom and top."""
    for row, (bottom, top) in zip(mark.counts, pairwise(mark.y_edges), strict=True):
        start: int | None = None
        for i, count in enumerate([*row, 0]):
            inside = low <= count < high
            if inside and start is None:
                start = i
            elif not inside and start is not None:
                yield mark.x_edges[start], mark.x_edges[i], bottom, top
                start = None


def _colour(number: int | None) -> str:
    return GREY if number is None else COLOURS[number % len(COLOURS)]
