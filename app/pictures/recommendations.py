"""The picture of recommendations."""

from collections.abc import Mapping
from typing import Any

from app.pictures.style import COLOURS, Picture

_LARGEST_ERROR = 2.0
_MARKERS = "osD^vPX*"


def recommendations_picture(finding: Mapping[str, Any]) -> bytes:
    """Error against output columns, a curve for each sampler.

    Args:
        finding: the answer to a request for recommendations.
    """
    curves: dict[str, list[tuple[int, float, float]]] = {}
    for trial in finding["ranked"]:
        point = (trial["n_output"], trial["error_mean"], trial["error_sd"])
        curves.setdefault(_label(trial["spec"]["sampler"]), []).append(point)
    picture = Picture(height=4.6)
    with picture as ((panel,),):
        for i, (label, points) in enumerate(curves.items()):
            columns, means, deviations = zip(*sorted(points), strict=True)
            colour, marker = COLOURS[i % len(COLOURS)], _MARKERS[i // len(COLOURS) % len(_MARKERS)]
            panel.errorbar(
                columns,
                means,
                deviations,
                label=label,
                color=colour,
                marker=marker,
                markersize=4,
                linewidth=1,
                capsize=2,
            )
        # A rule out of its reach is off by orders of magnitude; the curves to compare must not be squeezed for it.
        largest = max(trial["error_mean"] for trial in finding["ranked"])
        panel.set_xscale("log", base=2)
        if largest > 0:
            panel.set_ylim(top=min(_LARGEST_ERROR, 1.2 * largest))
            panel.set_yscale("log")
        panel.set_xlabel("output columns")
        panel.set_ylabel("relative Frobenius error")
        panel.legend(fontsize=8)
        return picture.svg()


def _label(sampler: Mapping[str, Any]) -> str:
    """The kind, that of the base, and a size that the rule dictates."""
    size = next((f" {sampler[name]}" for name in ("level", "degree", "points_per_dim") if sampler.get(name)), "")
    base = sampler.get("base")
    return f"{sampler['kind']}{size}" + (f" over {base['kind']}" if base else "")
