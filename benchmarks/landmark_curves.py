"""Curves of the error against columns, or against the time of a row: a picture with a panel for each set of data."""

import io
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure

PANELS_ABREAST = 2


class Style(NamedTuple):
    """How a curve looks: landmarks are solid, what needs no data dashed, the peer dotted."""

    colour: str
    line: str


STYLES = {
    "rp_cholesky": Style("C3", "-"),
    "k_means": Style("C1", "-"),
    "leverage": Style("C4", "-"),
    "uniform": Style("C5", "-"),
    "Nystroem": Style("black", ":"),
    "monte_carlo": Style("C7", "--"),
    "orthogonal": Style("C0", "--"),
    "structured_orthogonal": Style("C9", "--"),
    "sobol": Style("C2", "--"),
    "gcws": Style("C0", "--"),
}

Points = Mapping[str, Sequence[tuple[float, float]]]
"""By method, where its curve passes: abscissa and error."""


def drawn(panels: Mapping[str, Points], x_label: str, title: str) -> str:
    """The picture as SVG, always the same for the same curves; each panel has its name above it."""
    down = -(-len(panels) // PANELS_ABREAST)
    figure = Figure(figsize=(9, 2.7 * down + 0.8), layout="constrained")
    every = figure.subplots(down, PANELS_ABREAST, squeeze=False).ravel()
    for axes, (name, curves) in zip(every, panels.items(), strict=False):
        for method, points in curves.items():
            colour, line = STYLES[method]
            axes.loglog(*zip(*points, strict=True), color=colour, linestyle=line, marker="o", ms=3, label=method)
        axes.set(title=name, xlabel=x_label, ylabel="error")
        axes.grid(which="major", alpha=0.3)
    labelled = {label: one for axes in every for one, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(labelled.values(), labelled, loc="outside upper center", ncols=5, frameon=False)
    figure.suptitle(title)
    document = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "bochner"}):
        figure.savefig(document, format="svg", metadata={"Date": None})
    return document.getvalue()
