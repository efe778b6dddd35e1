"""Figure of a ranking: error or score against columns, with a colour for each kind of sampler, and the best spec."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from app.core.drawing import Beyond, Curve, Drawing, Mark, Panel, Star, kernel_name, sampler_name
from app.core.recommendations.trials import RankedTrial, Ranking

# Errors that are larger than the median by more than this factor, or smaller, are shown by arrows at the edge.
_REACH = 30.0
# Largest error that is drawn: a map that is off by as much as the matrix itself is useless, however far off it is.
_LARGEST_ERROR = 2.0
# Curves are shifted sideways within this many doublings of the columns, as most trials have the same columns.
_SPREAD = 0.4
# Most curves that can be told apart: those with the best trials are drawn.
_MOST_CURVES = 12
# Scores that are this many times farther behind the best than the median is are shown by arrows at the edge.
_BEHIND = 4.0


class _Curve(NamedTuple):
    """Curve of the maps that differ only in size."""

    label: str
    colour: int
    """Number of the sampler's kind."""
    marker: int
    """Number of the curve among the curves of that kind."""


def drawing(answer: Ranking, of: str) -> Drawing:
    """Return the figure of error against output columns, or of score if there are labels.

    `of` says in the title whose maps they are. Values that would squeeze the rest are arrows at the edge, with their
    size.
    """
    best_first = sorted(answer["ranked"], key=lambda trial: trial["spec"] != answer["best"])
    best = best_first[0]
    is_scored = best["score_mean"] is not None
    every: dict[str, list[RankedTrial]] = {}
    for trial in best_first:
        every.setdefault(_curve_label(trial["spec"]), []).append(trial)
    found = dict(islice(every.items(), _MOST_CURVES))
    ranked = [trial for trials in found.values() for trial in trials]
    curves = _curves([trial["spec"] for trial in ranked])
    few = f", the best {len(found)} of {len(every)} curves" if len(found) < len(every) else ""
    low, high = reach = _reach([_value(trial, is_scored)[0] for trial in ranked], is_scored)
    marks: list[Mark] = []
    for number, (drawn, trials) in enumerate(found.items()):
        aside = 2 ** (_SPREAD * (number / len(found) - 0.5))
        marks += _marks(sorted(trials, key=lambda trial: trial["n_output"]), curves[drawn], reach, is_scored, aside)
    marks.append(
        Star(
            best["n_output"] * 2 ** (-_SPREAD / 2),
            min(max(_value(best, is_scored)[0], low), high),
            f"best: {curves[_curve_label(best['spec'])].label}",
        )
    )
    panel = Panel(
        marks,
        x_label="output columns",
        y_label="score of the labels" if is_scored else "relative Frobenius error",
        title=f"mean ± standard deviation over maps of other seeds, {answer['reported_rows']:,} rows{few}",
        x_scale="log2",
        y_scale="linear" if is_scored else "log",
        y_range=reach,
        legend_beside=True,
    )
    kernels = {kernel_name(trial["spec"]["kernel"]) for trial in answer["ranked"]}
    kernel = kernels.pop() if len(kernels) == 1 else f"{len(kernels)} kernels"
    return Drawing([[panel]], row_height=4.8, title=f"Maps for {of}: {kernel}")


def _value(trial: RankedTrial, is_scored: bool) -> tuple[float, float]:
    """Return the value of a trial that is drawn, and its standard deviation."""
    if is_scored:
        return trial["score_mean"] or 0.0, trial["score_sd"] or 0.0
    return trial["error_mean"], trial["error_sd"]


def _reach(values: Sequence[float], is_scored: bool) -> tuple[float, float]:
    """Return the ends of the y axis."""
    median = float(np.median(values))
    if is_scored:
        most = max(values)
        low = max(min(values), most - _BEHIND * max(most - median, 0.01))
        return low - 0.05 * (most - low) - 0.005, most + 0.05 * (most - low) + 0.005
    positive = [value for value in values if value > 0]
    if not positive:
        return 0.1, 1.0  # a logarithmic axis needs ends; all errors are shown at the lower one
    middle = median or min(positive)
    most = min(max(_LARGEST_ERROR, min(positive)), middle * _REACH)
    inside = [value for value in positive if middle / _REACH <= value <= most] or positive
    return min(inside) / 1.2, max(inside) * 1.2


def _marks(
    trials: Sequence[RankedTrial], curve: _Curve, reach: tuple[float, float], is_scored: bool, aside: float
) -> list[Mark]:
    """Return the curve of trials by size, at `aside` times their columns, and arrows for trials beyond `reach`."""
    low, high = reach
    marks: list[Mark] = []
    inside = []
    for trial in trials:
        value, deviation = _value(trial, is_scored)
        if low <= value <= high:
            inside.append((aside * trial["n_output"], value, deviation))
        else:
            marks.append(Beyond(aside * trial["n_output"], value > high, f"{value:.2g}", curve.colour))
    columns, values, deviations = zip(*inside, strict=True) if inside else ((), (), ())
    return [Curve(columns, values, curve.label, curve.colour, "joined", deviations, curve.marker), *marks]


def _curves(specs: Sequence[dict[str, Any]]) -> dict[str, _Curve]:
    """Return the curves by `_curve_label`; kinds of samplers are numbered in the order of their first spec."""
    labels = _labels(specs)
    kinds: dict[str, list[str]] = {}
    for spec in specs:
        of_kind = kinds.setdefault(spec["sampler"]["kind"], [])
        if _curve_label(spec) not in of_kind:
            of_kind.append(_curve_label(spec))
    return {
        drawn: _Curve(labels[drawn], colour, marker)
        for colour, of_kind in enumerate(kinds.values())
        for marker, drawn in enumerate(of_kind)
    }


def _curve_label(spec: dict[str, Any]) -> str:
    """Return a text that identifies the curve of a spec."""
    return repr((spec.get("kernel"), spec["sampler"]))


def _labels(specs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return legend names by `_curve_label`; equal names are followed by the words in which the samplers differ."""
    kernels = {repr(spec.get("kernel")) for spec in specs}
    alike: dict[str, dict[str, dict[str, Any]]] = {}
    for spec in specs:
        label = sampler_name(spec["sampler"]) + (f", {kernel_name(spec['kernel'])}" if len(kernels) > 1 else "")
        alike.setdefault(label, {})[_curve_label(spec)] = spec["sampler"]
    labels = {}
    for label, several in alike.items():
        for text, sampler in several.items():
            own = (word for name, word in sampler.items() if any(one.get(name) != word for one in several.values()))
            labels[text] = " ".join([label, *(word for word in own if isinstance(word, str))])
    return labels
