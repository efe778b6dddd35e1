"""Figures of Matplotlib as SVG and as PNG."""

import io
import re
from collections.abc import Callable
from math import inf, log10
from threading import Lock

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from app.core.drawing import Drawing, Panel, Scale
from app.pictures.marks import draw_mark

# Not a colour of any picture: stands for the page's own until the drawing is done. In a PNG it is black.
INK = "#010203"
_STYLE = "<style>svg{color:#222}@media(prefers-color-scheme:dark){svg{color:#ddd}}</style>"
# As Matplotlib writes a cell, rounded: left, bottom, right and top.
_CELL = re.compile(r"M (\S+) (\S+) \nL (\S+) \2 \nL \3 (\S+) \nL \1 \4 \nz\n?")
_PATH = re.compile(r'(?<= d=")[^"]+')
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
# 144 dots an inch: sharp on a screen of two dots a pixel, and a megapixel a picture or less.
_DOTS_PER_INCH = 144
_PANEL_WIDTH, _LEGEND_WIDTH, _MARGIN, _TITLE_HEIGHT = 5.0, 2.4, 1.0, 0.35
_FEW_DECADES = 2.5
rcParams.update(
    {
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "bochner",  # the same picture has the same bytes
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
        "axes.titlesize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.titlesize": 11,
        "xtick.color": INK,
        "ytick.color": INK,
        "legend.frameon": False,
        "legend.fontsize": 8,
    }
)
# The library draws in one thread only, so pictures are drawn one after the other.
_ONE_AT_A_TIME = Lock()


def svg(drawing: Drawing) -> bytes:
    """The drawing as an SVG document; always the same bytes for the same drawing."""

    def write(figure: Figure) -> bytes:
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        document = buffer.getvalue().replace(INK, "currentColor")
        document = _PATH.sub(_short, document)
        inside = document.index(">", document.index("<svg")) + 1
        return (document[:inside] + _STYLE + document[inside:]).encode()

    return _drawn(drawing, write)


def png(drawing: Drawing) -> bytes:
    """The drawing as a PNG image on white; always the same bytes for the same drawing."""

    def write(figure: Figure) -> bytes:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None})
        return buffer.getvalue()

    return _drawn(drawing, write)


def _short(path: re.Match[str]) -> str:
    """A path in tenths of a point, which no screen tells apart, and cells by their sides."""
    return _CELL.sub(r"M\1 \2H\3V\4H\1z", _NUMBER.sub(lambda one: f"{float(one[0]):.1f}", path[0]))


def _drawn(drawing: Drawing, write: Callable[[Figure], bytes]) -> bytes:
    n_rows, n_columns = len(drawing.rows), max(map(len, drawing.rows))
    beside = any(panel.legend_beside for panels in drawing.rows for panel in panels)
    width = _PANEL_WIDTH * n_columns + _MARGIN + _LEGEND_WIDTH * beside
    height = drawing.row_height * n_rows + _TITLE_HEIGHT * (drawing.title is not None)
    with _ONE_AT_A_TIME:
        figure = Figure(figsize=(width, height), layout="constrained")
        every: list[list[Axes]] = figure.subplots(n_rows, n_columns, squeeze=False).tolist()
        for panels, row in zip(drawing.rows, every, strict=True):
            for panel, axes in zip(panels, row, strict=False):
                _draw(panel, axes)
            for axes in row[len(panels) :]:
                axes.remove()
        if drawing.title is not None:
            figure.suptitle(drawing.title, parse_math=False)
        return write(figure)


def _draw(panel: Panel, axes: Axes) -> None:
    for scale, set_scale in ((panel.x_scale, axes.set_xscale), (panel.y_scale, axes.set_yscale)):
        if scale != "linear":
            set_scale("log", base=10 if scale == "log" else 2)
    for mark in panel.marks:
        draw_mark(mark, axes, INK)
    if panel.y_range is not None:
        axes.set_ylim(panel.y_range)
    _number(panel.x_scale, axes.xaxis)
    _number(panel.y_scale, axes.yaxis)
    # A dollar in a name is a dollar, and begins no formula.
    axes.set_xlabel(panel.x_label, parse_math=False)
    axes.set_ylabel(panel.y_label, parse_math=False)
    if panel.title is not None:
        axes.set_title(panel.title, parse_math=False)
    if axes.get_legend_handles_labels()[0]:
        beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if panel.legend_beside else {}
        for text in axes.legend(**beside).get_texts():
            text.set_parse_math(False)


def _number(scale: Scale, axis: Axis) -> None:
    """Numbers along an axis: of a logarithm few, and without powers where they are near one another."""
    if scale == "linear":
        return
    low, high = axis.get_view_interval()
    decades = log10(high) - log10(low) if low > 0 else inf
    axis.set_minor_locator(NullLocator())
    if scale == "log2":
        axis.set_major_locator(LogLocator(base=2))
        axis.set_major_formatter(FuncFormatter(_plain))
    elif decades < _FEW_DECADES:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades > 1 else range(1, 10)))
        axis.set_major_formatter(FuncFormatter(_plain))


def _plain(number: float, _: object) -> str:
    return f"{number:.6g}"
