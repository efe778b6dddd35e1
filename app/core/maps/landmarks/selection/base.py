"""What the methods of selection give."""

from typing import NamedTuple

from app.core.arrays import Rows


class Selected(NamedTuple):
    """Landmarks, and what their selection tells."""

    landmarks: Rows
    """(s', d), as the kernel takes them."""
    report: dict[str, float]
