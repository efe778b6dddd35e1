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
    """A spec and what was measured of its maps."""

    spec: _Spec
    n_output: Annotated[int, Field(description="Output columns, or codes.")]
    error_mean: Annotated[
        float,
        Field(
            description="Relative Frobenius error of the Gram matrix of `rows` rows, mean over the maps, by rows that "
            "none was chosen by, if there are enough."
        ),
    ]
    error_sd: Annotated[float, Field(description="Standard deviation over the maps; 0 for one map.")]
    choosing_error: Annotated[
        float | None,
        Field(description="The mean on the choosing rows, by which it has its place; null where scores rank."),
    ]
    score_mean: Annotated[
        float | None,
        Field(
            description="Of ridge regression of the labels on the features: the share of classes that are right, or "
            "R², on rows that nothing was chosen by or trained with. Null without labels."
        ),
    ]
    score_sd: Annotated[float | None, Field(description="Standard deviation over the maps.")]
    choosing_score: Annotated[float | None, Field(description="The mean of cross-validation on the choosing rows.")]
    maps: Annotated[
        int,
        Field(
            description="How many maps, of other seeds, the means are of. For the best and its rivals, none of these "
            "had a part in choosing."
        ),
    ]
    tied_with_best: Annotated[
        bool | None,
        Field(
            description="Whether its error, or its score, is not told apart from that of the best, by Student's t of "
            "maps of one seed in pairs. One that is as good is told apart in 2.5 % of cases. Null for one map."
        ),
    ]
    bytes: Annotated[int, Field(description="Of the frozen arrays.")]
    seconds_per_1000_rows: Annotated[float, Field(description="Of a transform, on the machine that measured it.")]


class Skipped(TypedDict):
    """A sampler that could not be tried at a width, and why."""

    sampler: Annotated[dict[str, Any], DumpOf(Sampler)]
    columns: Annotated[int, Field(description="Within so many.")]
    reason: str | None


class Ranking(TypedDict):
    """The trials, the best first."""

    rows: Annotated[int, Field(description="How many rows were measured on; of more, a sample.")]
    reported_rows: Annotated[
        int, Field(description="How many of them the errors and scores are of; maps were chosen by the others.")
    ]
    learned_rows: Annotated[
        int | None,
        Field(
            description="How many other rows of the dataset there were for samplers that learn, none of them among "
            "the reported ones; null where nothing learned from the dataset, or the rows came without one."
        ),
    ]
    target_reached: Annotated[bool | None, Field(description="Null where no target_error came.")]
    ranked: list[RankedTrial]
    best: Annotated[_Spec, Field(description="To PUT.")]
    skipped: list[Skipped]
    notes: Annotated[list[str], Field(description="What to know of this ranking.")]


def drawing(answer: Ranking) -> Drawing:
    """Error against output columns, or score where labels came, a curve for each sampler and kernel."""
    ranked = answer["ranked"]
    is_scored = ranked[0]["score_mean"] is not None
    curves: dict[str, list[tuple[int, float, float]]] = {}
    labels = _labels([trial["spec"] for trial in ranked])
    for trial in ranked:
        mean, deviation = trial["error_mean"], trial["error_sd"]
        if is_scored:
            mean, deviation = trial["score_mean"] or 0.0, trial["score_sd"] or 0.0
        curves.setdefault(labels[_drawn(trial["spec"])], []).append((trial["n_output"], mean, deviation))
    marks = []
    for label, points in curves.items():
        columns, means, deviations = zip(*sorted(points), strict=True)
        marks.append(Curve(columns, means, label, deviations=deviations))
    largest = 0.0 if is_scored else max(trial["error_mean"] for trial in ranked)
    panel = Panel(
        marks,
        x_label="output columns",
        y_label="score of the labels" if is_scored else "relative Frobenius error",
        x_scale="log2",
        y_scale="log" if largest > 0 else "linear",
        y_top=min(_LARGEST_ERROR, 1.2 * largest) if largest > 0 else None,
        legend_size=8,
    )
    return Drawing([[panel]], row_height=4.6)


def _drawn(spec: dict[str, Any]) -> str:
    """The text of what has a curve of its own."""
    return repr((spec.get("kernel"), spec["sampler"]))


def _labels(specs: list[dict[str, Any]]) -> dict[str, str]:
    """Names in the legend, by `_drawn`; where several have one, each with the words they differ in."""
    kernels = {repr(spec.get("kernel")) for spec in specs}
    alike: dict[str, dict[str, dict[str, Any]]] = {}
    for spec in specs:
        label = _label(spec["sampler"]) + (f", {_kernel_label(spec['kernel'])}" if len(kernels) > 1 else "")
        alike.setdefault(label, {})[_drawn(spec)] = spec["sampler"]
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


def _kernel_label(kernel: dict[str, Any]) -> str:
    """The name of a kernel in the legend: its kind, and its scale if that is one number."""
    scale = kernel.get("length_scale", kernel.get("gamma"))
    return str(kernel["kind"]) + (f" {scale:.3g}" if isinstance(scale, float) else "")
