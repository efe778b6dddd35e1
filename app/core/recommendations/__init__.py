"""Which map to take: samplers and sizes tried on a client's rows, and ranked. Here, what a request says."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from app.core.input import Input
from app.core.kernels import Kernel
from app.core.kernels.base import Positive
from app.core.model import NAME_PATTERN, Frozen
from app.core.recommendations.candidates import Objective
from app.core.spec import Sampler


class KernelMember(Frozen):
    """The kernel of a request, its length scale a number by now."""

    kernel: Kernel


class KernelsMember(Frozen):
    """The kernels of a request, their length scales numbers by now."""

    kernel: Annotated[tuple[Kernel, ...], Field(fail_fast=True)]


class InputMember(Frozen):
    """The input of a request, of numbers by now."""

    input: Input


class LabelColumn(Frozen):
    """Labels that are a column of a dataset."""

    column: Annotated[int, Field(ge=0, description="Its number, from 0 on.")] = 0
    dataset: (
        Annotated[
            str,
            Field(
                pattern=NAME_PATTERN,
                description="A dataset of as many rows. If not given, the column is one of the rows' own dataset and "
                "left out of the rows; nothing learns from that dataset then, as it is wider than the rows.",
            ),
        ]
        | None
    ) = None


Label = bool | int | float | str
Described = Annotated[
    Annotated[dict[str, Any], Tag("one")]
    | Annotated[tuple[dict[str, Any], ...], Field(min_length=1, max_length=10, fail_fast=True), Tag("list")],
    Discriminator(lambda value: "list" if isinstance(value, list | tuple) else "one"),
]


class RecommendationOptions(Frozen):
    """Options of recommendations: kernels, labels, what is best, and what to try; the rows come beside them."""

    kernel: Annotated[
        Described,
        Field(
            description='As in a spec. Its length_scale may be "nearest_neighbor", "median" or {"per_column": one of '
            "these}, taken from all rows of the dataset, also where a sample of it is measured on, or of those posted. "
            "Or a list of kernels, which labels tell apart."
        ),
    ]
    input: Annotated[
        dict[str, Any] | None,
        Field(
            description="As in a spec: what is done to each row first, by the maps that are tried and in exact kernels."
        ),
    ] = None
    multiples: (
        Annotated[
            tuple[Positive, ...],
            Field(
                min_length=1,
                max_length=10,
                fail_fast=True,
                description="Each kernel is tried at so many times its length scale. If not given, 0.5, 1 and 2 for "
                "objective score where it is taken from rows, else 1.",
            ),
        ]
        | None
    ) = None
    y: (
        Annotated[
            Annotated[tuple[Label, ...], Field(fail_fast=True), Tag("list")] | Annotated[LabelColumn, Tag("column")],
            Discriminator(lambda value: "list" if isinstance(value, list | tuple) else "column"),
            Field(
                description="Labels: one for each of the vectors, or for each row of the dataset, sampled or not. Or a "
                "column of a dataset, which may be longer: a list counts in max_spec_bytes. Strings, booleans and "
                "whole numbers of at most 100 values are classes."
            ),
        ]
        | None
    ) = None
    labels_are: (
        Annotated[Literal["classes", "numbers"], Field(description="What labels are, where it is not as said.")] | None
    ) = None
    budget: Annotated[int, Field(ge=2, le=1 << 20, description="Most output columns, or codes.")] | None = None
    target_error: (
        Annotated[float, Field(gt=0, description="Relative Frobenius error of the Gram matrix to reach.")] | None
    ) = None
    objective: (
        Annotated[
            Objective,
            Field(
                strict=False,
                description="What is best: the smallest error, or the narrowest map that reaches target_error; the "
                "fastest transform, as measured, whose error reaches target_error; or the largest score of ridge "
                "regression on the features. If not given, score where there is y, else error.",
            ),
        ]
        | None
    ) = None
    samplers: (
        Annotated[
            tuple[Sampler, ...],
            Field(min_length=1, max_length=50, fail_fast=True, description="What to try; kinds or objects."),
        ]
        | None
    ) = None
    seeds: Annotated[
        int,
        Field(
            ge=1,
            le=20,
            description="Maps to measure of each spec; more of the best, and one of a spec that learns, that was not "
            "asked for and that has twice the least error.",
        ),
    ] = 3
    seed: Annotated[int, Field(ge=0, lt=1 << 64, description="Of the specs and of the sample of rows.")] = 0
