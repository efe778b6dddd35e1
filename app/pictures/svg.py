"""Drawings as SVG: transparent, with text and axes in the colour of the page, light or dark."""

import io
from threading import Lock

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from app.core.drawing import Curve, Drawing, Histogram, Mark, Panel, Points

# Mid-tones that stand out from white and from black alike (contrast of 3 and more), told apart by the colour-blind.
_COLOURS = ("#1f83c9", "#d1650c", "#24915a", "#b65aa5", "#9a7d0a", "#5a7be0", "#c9424a", "#6d7f86")
_DIAGONAL_COLOUR = "#808080"
# Of curves with error bars: another one once all colours are used.
_MARKERS = "osD^vPX*"

# Not a colour of any picture: stands for the page's own until the drawing is done.
_INK = "#010203"
_STYLE = "<style>svg{color:#222}@media(prefers-color-scheme:dark){svg{color:#ddd}}</style>"
rcParams.update(
    {
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "bochner",  # the same picture has the same bytes
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": _INK,
        "axes.labelcolor": _INK,
        "axes.edgecolor": _INK,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "legend.frameon": False,
    }
)
# The library draws in one thread only, so pictures are drawn one after the other.
_ONE_AT_A_TIME = Lock()


def svg(drawing: Drawing) -> bytes:
    """The drawing as an SVG document; always the same bytes for the same drawing.

    The marks of a panel have the colours in order, those of a row of several panels all the colour of the row.
    """
    n_rows, n_columns = len(drawing.rows), len(drawing.rows[0])
    figure = Figure(figsize=(5.0 * n_columns + 1.0, drawing.row_height * n_rows), layout="constrained")
    buffer = io.StringIO()
    with _ONE_AT_A_TIME:
        every: list[list[Axes]] = figure.subplots(n_rows, n_columns, squeeze=False).tolist()
        for i, (panels, row) in enumerate(zip(drawing.rows, every, strict=True)):
            for panel, axes in zip(panels, row, strict=True):
                _draw(panel, axes, first_colour=i if n_columns > 1 else 0)
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    document = buffer.getvalue().replace(_INK, "currentColor")
    inside = document.index(">", document.index("<svg")) + 1
    return (document[:inside] + _STYLE + document[inside:]).encode()


def _draw(panel: Panel, axes: Axes, first_colour: int) -> None:
    for i, mark in enumerate(panel.marks, first_colour):
        turn, place = divmod(i, len(_COLOURS))
        _draw_mark(mark, axes, _COLOURS[place], _MARKERS[turn % len(_MARKERS)])
    if panel.x_scale != "linear":
        axes.set_xscale("log", base=10 if panel.x_scale == "log" else 2)
    if panel.y_top is not None:
        axes.set_ylim(top=panel.y_top)
    if panel.y_scale == "log":
        axes.set_yscale("log")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.title is not None:
        axes.set_title(panel.title)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=panel.legend_size)


def _draw_mark(mark: Mark, axes: Axes, colour: str, marker: str) -> None:
    match mark:
        case Histogram():
            axes.stairs(mark.counts, mark.edges, fill=True, color=colour)
        case Points():
            axes.plot(mark.x, mark.y, ".", color=colour, markersize=3, alpha=0.6)
            ends = [min(mark.x), max(mark.x)]
            axes.plot(ends, ends, linewidth=1, color=_DIAGONAL_COLOUR)
        case Curve(deviations=None):
            axes.plot(mark.x, mark.y, "o--" if mark.dashed else "o-", color=colour, label=mark.label)
        case Curve():
            axes.errorbar(
                mark.x,
                mark.y,
                mark.deviations,
                label=mark.label,
                color=colour,
                marker=marker,
                markersize=4,
                linewidth=1,
                capsize=2,
            )
