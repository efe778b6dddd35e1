"""The picture of greatest errors."""

from collections.abc import Mapping
from typing import Any

from app.pictures.style import COLOURS, Picture


def max_error_picture(finding: Mapping[str, Any]) -> bytes:
    """Greatest and RMS error against the diameter, both logarithmic, and the bound where there is one.

    Args:
        finding: what `max_errors` found.
    """
    found = sorted(finding["diameters"], key=lambda one: one["diameter"])
    picture = Picture()
    with picture as ((panel,),):
        for member, label, colour in (
            ("max", "greatest", COLOURS[0]),
            ("rms", "root mean square", COLOURS[1]),
            ("bound", "bound", COLOURS[2]),
        ):
            points = [(one["diameter"], one[member]) for one in found if one[member] is not None]
            if points:
                panel.plot(*zip(*points, strict=True), "o--" if member == "bound" else "o-", color=colour, label=label)
        panel.set_xscale("log")
        # Errors that are all 0 have no logarithm.
        if any(one["max"] > 0 for one in found):
            panel.set_yscale("log")
        panel.set_xlabel("diameter M")
        panel.set_ylabel("|k(δ) − estimate| over |δ| ≤ M")
        panel.set_title(f"{finding['samples']} points, form {finding['form']}")
        panel.legend()
        return picture.svg()
