"""What a request for recommendations says, the specs worth trying, and the memory that trying them takes."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from math import inf
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Discriminator, Field, Tag

from app.core.errors import InvalidInput
from app.core.input import Input
from app.core.kernels import Kernel
from app.core.kernels.base import Positive
from app.core.maps import FAMILIES, Gives, family_of
from app.core.model import NAME_PATTERN, Frozen
from app.core.spec import MapSpec, Sampler

# Columns that are tried where there is a target and no budget: powers of two up to this, if memory allows.
MOST_COLUMNS = 1 << 14
_LEAST_COLUMNS = 1 << 4
# A budget is tried whole, halved and quartered, but never below two columns: what half of it would cost in accuracy is
# worth knowing.
_FRACTIONS, _FEWEST_COLUMNS = (1, 2, 4), 2

# Of a row in one column: a feature, a sample; of a pair of rows: kernels and errors; of a coordinate of a row.
_BYTES_PER_FEATURE, _BYTES_PER_SAMPLE, _BYTES_PER_PAIR, _BYTES_PER_ENTRY = 8, 72, 32, 24
# Of a pair more, where scores are wanted: what is trained with, and its eigenvectors.
_BYTES_PER_TRAINED_PAIR = 40
# Of a row that is learned from, in one column.
_BYTES_PER_LEARNED = 24


class Objective(StrEnum):
    """The measure by which maps are ranked."""

    error = "error"
    time = "time"
    score = "score"


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

    model_config = ConfigDict(use_attribute_docstrings=True)

    kernel: Described
    """As in a spec. Its length_scale may be "nearest_neighbor", "median" or {"per_column": one of these}, taken from
    all rows of the dataset, also where a sample of it is measured on, or of those posted. Or a list of kernels, which
    labels tell apart.
    """
    input: dict[str, Any] | None = None
    """As in a spec: what is done to each row first, by the maps that are tried and in exact kernels."""
    multiples: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=10, fail_fast=True)] | None = None
    """Each kernel is tried at so many times its length scale. If not given, 0.5, 1 and 2 for objective score where it
    is taken from rows, else 1.
    """
    y: (
        Annotated[
            Annotated[tuple[Label, ...], Field(fail_fast=True), Tag("list")] | Annotated[LabelColumn, Tag("column")],
            Discriminator(lambda value: "list" if isinstance(value, list | tuple) else "column"),
        ]
        | None
    ) = None
    """Labels: one for each of the vectors, or for each row of the dataset, sampled or not. Or a column of a dataset,
    which may be longer: a list counts in max_spec_bytes. Strings, booleans and whole numbers of at most 100 values are
    classes.
    """
    labels_are: Literal["classes", "numbers"] | None = None
    """What labels are, where it is not as said."""
    budget: Annotated[int, Field(ge=2, le=1 << 20)] | None = None
    """Most output columns, or codes."""
    target_error: Annotated[float, Field(gt=0)] | None = None
    """Relative Frobenius error of the Gram matrix to reach."""
    objective: Annotated[Objective, Field(strict=False)] | None = None
    """What is best: the smallest error, or the narrowest map that reaches target_error; the fastest transform, as
    measured, whose error reaches target_error; or the largest score of ridge regression on the features. If not given,
    score where there is y, else error.
    """
    samplers: Annotated[tuple[Sampler, ...], Field(min_length=1, max_length=50, fail_fast=True)] | None = None
    """What to try; kinds or objects."""
    seeds: Annotated[int, Field(ge=1, le=20)] = 3
    """Maps to measure of each spec; more of the best, and one of a spec that learns, that was not asked for and that
    has twice the least error.
    """
    seed: Annotated[int, Field(ge=0, lt=1 << 64)] = 0
    """Of the specs and of the sample of rows."""


class SettledOptions(RecommendationOptions):
    """Options as a job is given them: each kernel at all the length scales at which it is tried."""

    kernel: tuple[dict[str, Any], ...]


class Wanted(NamedTuple):
    """A client's wishes: a budget of output columns, a target error, or both, what is best, and samplers."""

    budget: int | None
    target_error: float | None
    samplers: Sequence[Sampler] | None = None
    """The samplers to try; None for those that each family tries for the kernel."""
    most: int = MOST_COLUMNS
    """Columns that are tried where there is no budget."""
    objective: Objective = Objective.error
    dataset: str | None = None
    """The dataset that the rows are of; None where they came as they are."""
    learned_rows: int = 0
    """How many rows of that dataset, none of which errors are measured on, there are to learn from."""
    map_bytes: int | None = None
    """The most that the arrays of a map may take; None where there is no limit."""
    input: Input | None = None
    """What every map does to a row first. It has been done to the rows that maps are measured on."""

    def check(self, has_labels: bool) -> None:
        """Raise InvalidInput for an objective without what it needs: labels, columns to score within, or an error."""
        if has_labels != (self.objective is Objective.score):
            pointer = "/objective" if has_labels else "/y"
            raise InvalidInput("labels and objective score go together; one came without the other", pointer)
        if self.objective is Objective.time and self.target_error is None:
            raise InvalidInput("objective time ranks the maps that reach a target_error; none came", "/target_error")
        if self.objective is Objective.score and self.target_error is not None:
            raise InvalidInput("objective score ranks by labels: target_error has no meaning", "/target_error")
        if self.objective is Objective.score and self.budget is None:
            raise InvalidInput("objective score wants a budget of columns; none came", "/budget")


class Candidate(NamedTuple):
    """A sampler to try within so many output columns."""

    sampler: Sampler
    kernel: Kernel
    columns: int
    spec: MapSpec | str
    """The spec, of form `cos_sin` where there are forms; or why there is none."""

    @property
    def name(self) -> str:
        """The same for one sampler and kernel at all sizes."""
        return f"{self.kernel!r} {self.sampler!r}"


def column_counts(wanted: Wanted) -> list[int]:
    """The numbers of output columns to try, in increasing order."""
    if wanted.objective is Objective.score and wanted.budget is not None:
        return [wanted.budget]
    if wanted.target_error is None and wanted.budget is not None:
        return sorted({wanted.budget // part for part in _FRACTIONS if wanted.budget // part >= _FEWEST_COLUMNS})
    most = wanted.budget or wanted.most
    return [1 << k for k in range(_LEAST_COLUMNS.bit_length() - 1, (most - 1).bit_length())] + [most]


def candidates(kernel: Kernel, input_dim: int, columns: int, wanted: Wanted, seed: int) -> Iterator[Candidate]:
    """Every sampler with its spec, at most `columns` wide; codes are columns."""
    for sampler in _samplers(kernel, input_dim, columns, wanted):
        spec: MapSpec | str
        try:
            s = family_of(sampler).size_for(sampler, columns, input_dim)
            spec = MapSpec(input_dim=input_dim, kernel=kernel, sampler=sampler, s=s, seed=seed, input=wanted.input)
            if wanted.samplers is None and sampler.learned_from is not None:
                _check_size(spec, wanted)
        except InvalidInput as error:
            spec = error.detail
        yield Candidate(sampler, kernel, columns, spec)


def _check_size(spec: MapSpec, wanted: Wanted) -> None:
    """Refuse a map that was not asked for and may not be put; where others may, that is no reason to refuse all."""
    nbytes = family_of(spec.sampler).frozen_bytes(spec)
    if wanted.map_bytes is not None and nbytes > wanted.map_bytes:
        raise InvalidInput(f"the map's arrays would take {nbytes} bytes; max_map_bytes is {wanted.map_bytes}")


def at_multiples(kernel: Kernel, multiples: Sequence[float]) -> list[Kernel]:
    """The kernel at so many times its length scale; as it is where it has none.

    Raises:
        InvalidInput: a length scale would be 0 or infinite.
    """
    scale = getattr(kernel, "length_scale", None)
    if scale is None:
        return [kernel]
    every = []
    for i, factor in enumerate(multiples):
        stretched = tuple(factor * one for one in scale) if isinstance(scale, tuple) else factor * scale
        if not all(0 < one < inf for one in (stretched if isinstance(stretched, tuple) else (stretched,))):
            raise InvalidInput(f"{factor:g} times the length scale leaves the range of float64", f"/multiples/{i}")
        every.append(kernel.model_copy(update={"length_scale": stretched}))
    return every


def learned_from(kernels: Sequence[Kernel], input_dim: int, wanted: Wanted) -> set[str]:
    """The datasets that the samplers to try learn from."""
    every = (
        one
        for kernel in kernels
        for columns in column_counts(wanted)
        for one in _samplers(kernel, input_dim, columns, wanted)
    )
    return {dataset for sampler in every if (dataset := sampler.learned_from) is not None}


def _samplers(kernel: Kernel, input_dim: int, columns: int, wanted: Wanted) -> Sequence[Sampler]:
    """The samplers to try within so many columns."""
    if wanted.samplers is not None:
        return wanted.samplers
    return [sampler for family in FAMILIES for sampler in family.suggest(kernel, input_dim, columns, wanted.dataset)]


def widest_map_bytes(input_dim: int, wanted: Wanted, kernel: Kernel) -> int:
    """Memory of the frozen arrays of the largest map that may be recommended."""
    widest = (one.spec for one in candidates(kernel, input_dim, column_counts(wanted)[-1], wanted, 0))
    return max((family_of(spec.sampler).frozen_bytes(spec) for spec in widest if isinstance(spec, MapSpec)), default=0)


def fitting(wanted: Wanted, n: int, input_dim: int, kernel: Kernel, *, map_bytes: int, work_bytes: int) -> Wanted:
    """The wishes within these limits; if they name no budget, without sizes that pass them.

    Maps that learn and that nobody asked for are left out where they alone are too large.
    """
    wanted = wanted._replace(map_bytes=map_bytes)
    if wanted.budget is not None:
        return wanted
    while wanted.most > _FEWEST_COLUMNS and (
        widest_map_bytes(input_dim, wanted, kernel) > map_bytes
        or recommended_bytes(n, input_dim, wanted, kernel) > work_bytes
    ):
        wanted = wanted._replace(most=wanted.most // 2)
    return wanted


def recommended_bytes(n: int, input_dim: int, wanted: Wanted, kernel: Kernel) -> int:
    """Memory that `recommend` takes beside n rows: n×n matrices, and the widest of its maps with what it makes."""
    learned, made = 0, 0
    for columns in column_counts(wanted):
        for one in candidates(kernel, input_dim, columns, wanted, 0):
            if isinstance(spec := one.spec, MapSpec):
                its_family = family_of(spec.sampler)
                of_entry = _BYTES_PER_FEATURE if Gives.features in its_family.gives else _BYTES_PER_SAMPLE
                made = max(made, its_family.drawing_bytes(spec) + n * columns * of_entry)
                if spec.sampler.learned_from is not None:
                    learned = max(learned, wanted.learned_rows * (spec.s or columns) * _BYTES_PER_LEARNED)
    dense = 0 if kernel.compares_sparse else _BYTES_PER_ENTRY * (n + wanted.learned_rows) * input_dim
    per_pair = _BYTES_PER_PAIR + (_BYTES_PER_TRAINED_PAIR if wanted.objective is Objective.score else 0)
    return per_pair * n * n + dense + learned + made
