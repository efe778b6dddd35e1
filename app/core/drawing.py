"""Pictures as plain data: what is drawn where. `app.pictures` draws them and knows nothing of what they mean."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

Scale = Literal["linear", "log", "log2"]


class Curve(NamedTuple):
    """Markers joined by lines."""

    x: Sequence[float]
    y: Sequence[float]
    label: str
    """Its name in the legend."""
    dashed: bool = False
    deviations: Sequence[float] | None = None
    """Half the lengths of error bars, if there are any."""


class Points(NamedTuple):
    """A cloud of small points, beside the diagonal on which x = y."""

    x: Sequence[float]
    y: Sequence[float]


class Histogram(NamedTuple):
    """Filled steps."""

    edges: Sequence[float]
    counts: Sequence[int]


Mark = Curve | Points | Histogram


class Panel(NamedTuple):
    """One pair of axes with what is drawn on it."""

    marks: Sequence[Mark]
    x_label: str
    y_label: str
    title: str | None = None
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    y_top: float | None = None
    """Upper end of the y axis; None for the end of the marks."""
    legend_size: int = 10
    """Size of the letters, in points; there is a legend where there are curves."""


class Drawing(NamedTuple):
    """Panels in rows."""

    rows: Sequence[Sequence[Panel]]
    row_height: float = 4.0
    """Height of each row, in inches."""
