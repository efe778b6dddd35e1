"""The picture of variances: simulated ones, and every closed form that is known, against the kernel."""

from typing import Any, Literal, cast

import numpy as np

from app.core.diagnostics.variance_answer import ClosedForms, PairVariance, Variances
from app.core.drawing import Curve, Drawing, Panel

MOST_PAIRS = 100
"""So many pairs are drawn at the most, spread evenly by rank of the kernel: each takes up to 1.2 kB of SVG."""


def drawing(answer: Variances) -> Drawing:
    """The variance against the kernel: simulated, with its standard error, and every closed form that is known."""
    pairs = sorted(answer["pairs"], key=lambda pair: pair["exact"])
    if len(pairs) > MOST_PAIRS:
        pairs = [pairs[i] for i in np.linspace(0, len(pairs) - 1, MOST_PAIRS).astype(int)]
    names = [*ClosedForms.__annotations__]
    curves = _simulated(pairs, answer["repeats"], names, answer["own"])
    kernel = [pair["exact"] for pair in pairs]
    for number, name in enumerate(names):
        forms = [cast(dict[str, float | None], pair["closed_forms"])[name] for pair in pairs]
        known = [value for value in forms if value is not None]
        if known:
            is_own = name == answer["own"]
            label = f"closed form {name}" + (", this map's" if is_own else "")
            curves.append(Curve(kernel, known, label, number, "line" if is_own else "dashed"))
    title = f"{answer['repeats']:,} maps of other seeds" + (f", form {answer['form']}" if answer["form"] else "")
    panel = Panel(curves, x_label="exact kernel", y_label="variance of its estimate", title=title, legend_beside=True)
    return Drawing([[panel]])


def _simulated(pairs: list[PairVariance], repeats: int, names: list[str], own: str | None) -> list[Curve]:
    """The variances over maps of other seeds: of the kernel's estimate, and of the RBF kernel's made of it.

    They have the colours of their closed forms.
    """
    members: dict[Literal["empirical", "rbf_empirical"], tuple[str, int | None]] = {
        "empirical": (f"{repeats:,} maps, ± standard error", None if own is None else names.index(own)),
        "rbf_empirical": (f"RBF kernel of {repeats:,} maps, ± standard error", names.index("rbf_from_gcws")),
    }
    curves = []
    for member, (label, colour) in members.items():
        found: list[tuple[float, Any]] = [(pair["exact"], one) for pair in pairs if (one := pair[member]) is not None]
        if found:
            x, y = [exact for exact, _ in found], [one["variance"] for _, one in found]
            errors = [one["standard_error"] for _, one in found]
            curves.append(Curve(x, y, label, colour, "markers", errors))
    return curves
