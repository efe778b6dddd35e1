"""How all pictures look: transparent, with text and axes in the colour of the page, light or dark."""

import io
from threading import Lock

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

MEDIA_TYPE = "image/svg+xml"

# Mid-tones that stand out from white and from black alike (contrast of 3 and more), told apart by the colour-blind.
COLOURS = ("#1f83c9", "#d1650c", "#24915a", "#b65aa5", "#9a7d0a", "#5a7be0", "#c9424a", "#6d7f86")

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


class Picture:
    """A figure of panels, to be drawn on inside the context.

    Args:
        rows: of panels.
        columns: of panels.
        height: of a row, in inches.
    """

    def __init__(self, rows: int = 1, columns: int = 1, height: float = 4.0) -> None:
        self._figure = Figure(figsize=(5.0 * columns + 1.0, height * rows), layout="constrained")
        self._shape = rows, columns

    def __enter__(self) -> list[list[Axes]]:
        """The panels, row by row."""
        _ONE_AT_A_TIME.acquire()
        panels: list[list[Axes]] = self._figure.subplots(*self._shape, squeeze=False).tolist()
        return panels

    def __exit__(self, *_: object) -> None:
        _ONE_AT_A_TIME.release()

    def svg(self) -> bytes:
        """The figure as an SVG document."""
        buffer = io.StringIO()
        self._figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        document = buffer.getvalue().replace(_INK, "currentColor")
        inside = document.index(">", document.index("<svg")) + 1
        return (document[:inside] + _STYLE + document[inside:]).encode()
