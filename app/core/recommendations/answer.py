"""The answer to a request for recommendations: a ranking of the trials."""

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from app.core.model import DumpOf
from app.core.spec import MapSpec, Sampler

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
