"""The picture of collisions: estimates against the exact kernel for each way to write codes, and their errors."""

from collections.abc import Mapping

import numpy as np

from app.core.arrays import Matrix
from app.core.diagnostics.random_pairs import rms_by_kernel
from app.core.drawing import Curve, Density, Drawing, Panel, density


def drawing(ways: Mapping[str, Matrix], exact: Matrix, rbf: tuple[Matrix, Matrix] | None, s: int) -> Drawing:
    """A panel for each way to write codes; their errors by the kernel; the estimate of the RBF kernel.

    Args:
        ways: the estimates of the pairs for each way, some not finite where there is none.
        exact: the kernels of the pairs.
        rbf: the RBF kernels of the pairs and their estimates, if they were asked for.
        s: how many hashes.
    """
    of = len(ways) + (rbf is not None)
    panels = [_panel(name, exact, value, colour, of) for colour, (name, value) in enumerate(ways.items())]
    panels.append(_errors(ways, exact, s))
    if rbf is not None:
        panels.append(_panel("RBF kernel, of full samples", *rbf, len(ways), of)._replace(x_label="exact RBF kernel"))
    return Drawing([panels[i : i + 2] for i in range(0, len(panels), 2)], row_height=3.6)


def _panel(name: str, exact: Matrix, value: Matrix, colour: int, of: int) -> Panel:
    """Estimate against exact kernel of the pairs that have an estimate, beside the diagonal."""
    known = np.isfinite(value)
    marks: list[Density | Curve] = []
    if known.any():
        x, y = exact[known], value[known]
        marks.append(density(x, y, "pairs", colour, of))
        ends = [float(x.min()), float(x.max())]
        marks.append(Curve(ends, ends, "exact", None, "dashed"))
    bias = f"bias {(value - exact)[known].mean():.2g}" if known.any() else "no estimate"
    return Panel(marks, x_label="exact min-max kernel", y_label="estimate", title=f"{name}: {bias}")


def _errors(ways: Mapping[str, Matrix], exact: Matrix, s: int) -> Panel:
    """Root mean square errors of each way by the kernel g, and √(g(1 − g)/s), which full samples have."""
    marks = []
    for colour, (name, value) in enumerate(ways.items()):
        known = np.isfinite(value)
        middles, rms = rms_by_kernel(exact[known], value[known] - exact[known])
        if middles:
            marks.append(Curve(middles, rms, name, colour, marker=colour))
    g = np.linspace(float(exact.min()), float(exact.max()), 40)
    marks.append(Curve(g.tolist(), np.sqrt(g * (1 - g) / s).tolist(), "√(g(1 − g)/s), in theory", None, "dashed"))
    return Panel(marks, x_label="exact min-max kernel g", y_label="root mean square error", title=f"{s:,} hashes")
