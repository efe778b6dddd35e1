"""The answer to a request for recommendations: a ranking of the trials, and a picture of it."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from app.core.drawing import Curve, Drawing, Panel
from app.core.model import DumpOf
from app.core.spec import MapSpec, Sampler

# A rule out of its reach is off by orders of magnitude; the curves to compare must not be squeezed for it.
_LARGEST_ERROR = 2.0
_Spec = Annotated[dict[str, Any], DumpOf(MapSpec)]


class RankedTrial(TypedDict):
    """A spec and what was measured of it."""

    spec: _Spec
    n_output: Annotated[int, Field(description="Output columns, or codes.")]
    error_mean: Annotated[float, Field(description="Relative Frobenius error of the Gram matrix, over the seeds.")]
    error_sd: Annotated[float, Field(description="Standard deviation over the seeds; 0 for one seed.")]
    bytes: Annotated[int, Field(description="Of the frozen arrays.")]
    seconds_per_1000_rows: Annotated[float, Field(description="Of a transform, on the machine that measured it.")]


class Skipped(TypedDict):
    """A sampler that could not be tried at a width, and why."""

    sampler: Annotated[dict[str, Any], DumpOf(Sampler)]
    columns: Annotated[int, Field(description="Within so many.")]
    reason: str | None


class Ranking(TypedDict):
    """The trials, the best first."""

    rows: Annotated[int, Field(description="How many rows errors were measured on; of more, a sample.")]
    learned_rows: Annotated[
        int | None,
        Field(
            description="How many other rows of the dataset there were for samplers that learn, none of them among "
            "those; null where nothing learned from the dataset, or the rows came without one."
        ),
    ]
    target_reached: Annotated[bool | None, Field(description="Null where no target_error came.")]
    ranked: list[RankedTrial]
    best: Annotated[_Spec, Field(description="To PUT.")]
    skipped: list[Skipped]


def drawing(answer: Ranking) -> Drawing:
    """Error against output columns, a curve for each sampler."""
    curves: dict[str, list[tuple[int, float, float]]] = {}
    labels = _labels([trial["spec"]["sampler"] for trial in answer["ranked"]])
    for trial in answer["ranked"]:
        point = (trial["n_output"], trial["error_mean"], trial["error_sd"])
        curves.setdefault(labels[repr(trial["spec"]["sampler"])], []).append(point)
    marks = []
    for label, points in curves.items():
        columns, means, deviations = zip(*sorted(points), strict=True)
        marks.append(Curve(columns, means, label, deviations=deviations))
    largest = max(trial["error_mean"] for trial in answer["ranked"])
    panel = Panel(
        marks,
        x_label="output columns",
        y_label="relative Frobenius error",
        x_scale="log2",
        y_scale="log" if largest > 0 else "linear",
        y_top=min(_LARGEST_ERROR, 1.2 * largest) if largest > 0 else None,
        legend_size=8,
    )
    return Drawing([[panel]], row_height=4.6)


def _labels(samplers: list[dict[str, Any]]) -> dict[str, str]:
    """Names of samplers in the legend, by their text; where several have one, each with the words they differ in."""
    alike: dict[str, dict[str, dict[str, Any]]] = {}
    for sampler in samplers:
        alike.setdefault(_label(sampler), {})[repr(sampler)] = sampler
    labels = {}
    for label, several in alike.items():
        for text, sampler in several.items():
            own = (word for name, word in sampler.items() if any(one.get(name) != word for one in several.values()))
            labels[text] = " ".join([label, *(word for word in own if isinstance(word, str))])
    return labels


def _label(sampler: dict[str, Any]) -> str:
    """The name of a sampler in the legend: its kind, that of its base, and a size that the rule dictates."""
    size = next((f" {sampler[name]}" for name in ("level", "degree", "points_per_dim") if sampler.get(name)), "")
    base = sampler.get("base")
    return f"{sampler['kind']}{size}" + (f" over {base['kind']}" if base else "")
