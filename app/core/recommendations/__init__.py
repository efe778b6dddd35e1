"""Which map to take: samplers and sizes tried on a client's rows, and ranked. Here, what a request says."""

from typing import Annotated, Any

from pydantic import Field

from app.core.kernels import Kernel
from app.core.model import Frozen
from app.core.recommendations.candidates import Objective
from app.core.spec import Sampler


class KernelMember(Frozen):
    """The kernel of a request, its length scale a number by now."""

    kernel: Kernel


class RecommendationOptions(Frozen):
    """What a request for recommendations says beside its rows."""

    kernel: Annotated[
        dict[str, Any],
        Field(
            description='As in a spec. Its length_scale may be "nearest_neighbor", "median" or {"per_column": one of '
            "these}, taken from all rows of the dataset, also where a sample of it is measured on, or of those posted."
        ),
    ]
    budget: Annotated[int, Field(ge=2, le=1 << 20, description="Most output columns, or codes.")] | None = None
    target_error: (
        Annotated[float, Field(gt=0, description="Relative Frobenius error of the Gram matrix to reach.")] | None
    ) = None
    objective: Annotated[
        Objective,
        Field(
            strict=False,
            description="What is best: the smallest error, or the narrowest map that reaches target_error; or the "
            "fastest transform, as measured, whose error reaches target_error.",
        ),
    ] = Objective.error
    samplers: (
        Annotated[tuple[Sampler, ...], Field(min_length=1, max_length=50, description="What to try; kinds or objects.")]
        | None
    ) = None
    seeds: Annotated[int, Field(ge=1, le=20, description="Maps to measure of each spec.")] = 3
    seed: Annotated[int, Field(ge=0, lt=1 << 64, description="Of the specs and of the sample of rows.")] = 0
