"""Curves and maps of colours as SVG: one colour for each method in every picture, on a light ground."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks.data import Rows

COLOURS = {
    "MC": "#6b6b6b",
    "Halton": "#1f77b4",
    "Sobol'": "#d62728",
    "lattice": "#2ca02c",
    "digital net": "#9467bd",
    "moment matching": "#ff7f0e",
    "antithetic": "#8c564b",
    "CV1": "#17becf",
    "CV2": "#bcbd22",
    "global": "#e377c2",
    "greedy": "#2b8c5a",
    "weighted": "#b8860b",
    "subsampled grid": "#009e9e",
    "sparse grid": "#7b3fb5",
    "polynomially exact": "#c2185b",
    "reweighted grid": "#e65100",
    "exact kernel": "#000000",
    "GMM": "#0b6e4f",
    "GCWS": "#0b6e4f",
    "RBF": "#c0392b",
    "NRFF": "#c0392b",
    "RFF": "#6b6b6b",
    "linear": "#6b6b6b",
    "normalised D²": "#000000",
    "greatest squared error": "#d62728",
    "mean squared error": "#1f77b4",
    "relative Frobenius error": "#ff7f0e",
}
"""By method, or metric of one method. What follows a comma in a curve's name is a variant, of the method's colour."""
_VARIANTS = ("-", "--", ":", "-.")
_MARKERS = "osD^v"

Points = Sequence[tuple[float, float, float]]
"""Abscissa, mean and standard error."""


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: above it.
        x, y: what the axes show, with units.
        curves: by method, or method and variant.
        scales: of the axes: log, linear.
    """

    title: str
    x: str
    y: str
    curves: Mapping[str, Points]
    scales: tuple[str, str] = ("log", "log")
    ticks: Sequence[float] = field(default=())


def curves(panels: Sequence[Panel], abreast: int = 2) -> Figure:
    """The panels with one legend for all; bars are two standard errors to both sides."""
    panels = [panel for panel in panels if panel.curves]
    abreast = min(abreast, max(1, len(panels)))
    down = max(1, -(-len(panels) // abreast))
    figure = Figure(figsize=(1.0 + 4.2 * abreast, 0.9 + 3.1 * down), layout="constrained", facecolor="white")
    every = figure.subplots(down, abreast, squeeze=False).ravel()
    for axes in every[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(every, panels, strict=False):
        _draw(axes, panel)
    labelled = {label: one for axes in every for one, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if labelled:
        figure.legend(
            labelled.values(), labelled, loc="outside upper center", ncols=min(5, len(labelled)), frameon=False
        )
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    variants: dict[str, int] = {}
    for name, points in panel.curves.items():
        method = name.partition(",")[0]
        variant = variants[method] = variants.get(method, -1) + 1
        x, mean, error = np.array(sorted(points)).T
        style: dict[str, Any] = {
            "color": COLOURS[method],
            "linestyle": _VARIANTS[variant % len(_VARIANTS)],
            "linewidth": 1.4,
        }
        style |= {"marker": _MARKERS[variant % len(_MARKERS)], "markersize": 3.5}
        axes.errorbar(x, mean, yerr=2 * error, capsize=2, label=name, **style)
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y, xscale=panel.scales[0], yscale=panel.scales[1])
    if panel.ticks:
        axes.set_xticks(panel.ticks, [f"{tick:g}" for tick in panel.ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(which="major", alpha=0.25)


def heat(maps: Mapping[str, Rows], label: str, x: str, y: str, extent: tuple[float, float, float, float]) -> Figure:
    """Decimal logarithms of positive numbers on a plane, from −6 on, side by side with one scale of colours."""
    figure = Figure(figsize=(1.5 + 2.9 * len(maps), 3.3), layout="constrained", facecolor="white")
    every = figure.subplots(1, len(maps), squeeze=False).ravel()
    logs = {name: np.log10(np.maximum(values, 1e-6)) for name, values in maps.items()}
    low, high = (float(function([function(one) for one in logs.values()])) for function in (np.min, np.max))
    for axes, (name, values) in zip(every, logs.items(), strict=True):
        image = axes.imshow(values, origin="lower", extent=extent, vmin=low, vmax=high, cmap="viridis", aspect="equal")
        axes.set(title=name, xlabel=x, ylabel=y if axes is every[0] else "")
    figure.colorbar(image, ax=every.tolist(), label=label)
    return figure


def scatter(sets: Mapping[str, Rows]) -> Figure:
    """Points of the unit square, side by side."""
    figure = Figure(figsize=(3.7 * len(sets), 3.8), layout="constrained", facecolor="white")
    every = figure.subplots(1, len(sets), squeeze=False).ravel()
    for axes, (name, points) in zip(every, sets.items(), strict=True):
        axes.plot(points[:, 0], points[:, 1], ".", markersize=2.2, color=COLOURS[name])
        axes.set(title=name, aspect="equal", xlim=(0, 1), ylim=(0, 1), xlabel="first coordinate")
    every[0].set(ylabel="second coordinate")
    return figure


def svg(figure: Figure) -> str:
    """The picture as text; always the same for the same figure."""
    document = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "bochner"}):
        figure.savefig(document, format="svg", metadata={"Date": None})
    return document.getvalue()
