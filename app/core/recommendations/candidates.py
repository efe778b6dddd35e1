"""Options of a request for recommendations, the specs worth trying, and the memory that trials take."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from math import inf
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from app.core.errors import InvalidInput
from app.core.input import Input
from app.core.kernels import Kernel
from app.core.kernels.base import Positive
from app.core.maps import FAMILIES, Gives, family_of
from app.core.model import NAME_PATTERN, Frozen
from app.core.spec import MapSpec, Sampler

# Largest number of columns that is tried if there is a target and no budget: powers of two up to this, if memory
# allows.
MOST_COLUMNS = 1 << 14
_LEAST_COLUMNS = 1 << 4
# A budget is tried whole, halved and quartered, but never below two columns: it is worth knowing what half of the
# budget costs in accuracy.
_FRACTIONS, _FEWEST_COLUMNS = (1, 2, 4), 2

# Bytes per feature and per sample of a row in one column; per pair of rows, for kernels and errors; per entry of a row.
_BYTES_PER_FEATURE, _BYTES_PER_SAMPLE, _BYTES_PER_PAIR, _BYTES_PER_ENTRY = 8, 72, 32, 24
# Further bytes per pair of rows if there are scores, for the training data and its eigenvectors.
_BYTES_PER_TRAINED_PAIR = 40
# Bytes per row to learn from, in one column.
_BYTES_PER_LEARNED = 24


class Objective(StrEnum):
    """Measure by which maps are ranked."""

    error = "error"
    time = "time"
    score = "score"


class KernelMember(Frozen):
    """Kernel of a request, its length scale resolved to numbers."""

    kernel: Kernel


class KernelsMember(Frozen):
    """Kernels of a request, their length scales resolved to numbers."""

    kernel: Annotated[tuple[Kernel, ...], Field(fail_fast=True)]


class InputMember(Frozen):
    """Preprocessing (`input`) of a request, resolved to numbers."""

    input: Input


class LabelColumn(Frozen):
    """Labels that are a column of a dataset."""

    column: Annotated[int, Field(ge=0)] = 0
    """Column number, counted from 0."""
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


def _refuse_no_label(value: object) -> object:
    if not isinstance(value, bool | int | float | str):
        raise PydanticCustomError("label", "expected a label: a number, a string or a boolean")
    return value


Label = Annotated[bool | int | float | str, BeforeValidator(_refuse_no_label)]
Described = Annotated[
    Annotated[dict[str, Any], Tag("one")]
    | Annotated[tuple[dict[str, Any], ...], Field(min_length=1, max_length=10, fail_fast=True), Tag("list")],
    Discriminator(lambda value: "list" if isinstance(value, list | tuple) else "one"),
]


class RecommendationOptions(Frozen):
    """Options of recommendations: kernels, labels, objective, and what to try. The rows are sent beside the options."""

    kernel: Described
    """A kernel as in a spec, or a list of kernels; which kernel of a list suits a task, only labels (y) can tell.
    length_scale may be "nearest_neighbor", "median" or {"per_column": one of these}; it is then computed from the
    posted rows, or from all rows of the dataset, even if only a sample of them is measured.
    """
    input: dict[str, Any] | str | None = None
    """Preprocessing as in a spec, applied to each row first by the maps that are tried and in exact kernels."""
    multiples: Annotated[tuple[Positive, ...], Field(min_length=1, max_length=10, fail_fast=True)] | None = None
    """Factors of the length scale at which each kernel is tried. If not given, 0.5, 1 and 2 for objective score if the
    length scale is computed from rows, else 1.
    """
    y: (
        Annotated[
            Annotated[tuple[Label, ...], Field(fail_fast=True), Tag("list")] | Annotated[LabelColumn, Tag("column")],
            Discriminator(lambda value: "list" if isinstance(value, list | tuple) else "column"),
        ]
        | None
    ) = None
    """Labels: one for each of the vectors, or for each row of the dataset, sampled or not. Or a column of a dataset,
    which may be longer than a list, as a list counts in max_spec_bytes. Strings, booleans and whole numbers of at most
    100 different values are classes.
    """
    labels_are: Literal["classes", "numbers"] | None = None
    """Whether labels are classes or numbers, to override the rule of y."""
    budget: Annotated[int, Field(ge=2, le=1 << 20)] | None = None
    """Largest number of output columns, or of codes."""
    target_error: Annotated[float, Field(gt=0)] | None = None
    """Relative Frobenius error of the Gram matrix that a map must reach."""
    objective: Annotated[Objective, Field(strict=False)] | None = None
    """Criterion of the ranking. error: the smallest error is best or, with target_error, the narrowest map that reaches
    it. time: the fastest transform, as measured, of the maps that reach target_error. score: the largest score of ridge
    regression on the features. If not given, score if there is y, else error.
    """
    samplers: Annotated[tuple[Sampler, ...], Field(min_length=1, max_length=50, fail_fast=True)] | None = None
    """Samplers to try, as kinds or objects; if not given, those that suit the kernel."""
    mode: Literal["full", "quick"] = "full"
    """quick: one map of each spec, of the best few four, and no fewer columns than the budget; the intervals are wider.
    """
    seeds: Annotated[int, Field(ge=1, le=20)] = 3
    """Number of maps to measure of each spec. More are measured of the best specs. Only one is measured of a spec that
    learns, if its sampler was not asked for and its error is more than twice the smallest.
    """
    seed: Annotated[int, Field(ge=0, lt=1 << 64)] = 0
    """Seed of the specs and of the sample of rows."""


class SettledOptions(RecommendationOptions):
    """Options as a job receives them: each kernel at all the length scales at which it is tried."""

    kernel: tuple[dict[str, Any], ...]


class Wanted(NamedTuple):
    """Requirements of a client: a budget of output columns, a target error or both; the objective; and samplers."""

    budget: int | None
    target_error: float | None
    samplers: Sequence[Sampler] | None = None
    """Samplers to try; None for those that each family suggests for the kernel."""
    most: int = MOST_COLUMNS
    """Largest number of columns to try if there is no budget."""
    objective: Objective = Objective.error
    dataset: str | None = None
    """Dataset of the rows, which samplers may learn from; None if rows were posted, or nothing can learn from it."""
    learned_rows: int = 0
    """Number of rows of that dataset to learn from; no error is measured on them."""
    map_bytes: int | None = None
    """Most bytes that the arrays of a map may take; None if there is no limit."""
    input: Input | None = None
    """Preprocessing that every map applies to a row; the rows that maps are measured on are preprocessed already."""

    def check(self, has_labels: bool) -> None:
        """Raise InvalidInput if the objective does not go with the given labels, budget or target error."""
        if has_labels != (self.objective is Objective.score):
            pointer = "/objective" if has_labels else "/y"
            raise InvalidInput("labels and objective score go together, got one without the other", pointer)
        if self.objective is Objective.time and self.target_error is None:
            raise InvalidInput("expected a target_error for objective time, got none", "/target_error")
        if self.objective is Objective.score and self.target_error is not None:
            raise InvalidInput("objective score ranks by labels: target_error has no meaning", "/target_error")
        if self.objective is Objective.score and self.budget is None:
            raise InvalidInput("expected a budget of columns for objective score, got none", "/budget")


class Candidate(NamedTuple):
    """Sampler to try for a kernel, with at most `columns` output columns."""

    sampler: Sampler
    kernel: Kernel
    columns: int
    spec: MapSpec | str
    """The spec, with form `cos_sin` if it has a form; or the reason why there is none."""

    @property
    def name(self) -> str:
        """Text that is the same for all sizes of one sampler and kernel."""
        return f"{self.kernel!r} {self.sampler!r}"


def column_counts(wanted: Wanted) -> list[int]:
    """Return the numbers of output columns to try, in increasing order."""
    if wanted.objective is Objective.score and wanted.budget is not None:
        return [wanted.budget]
    if wanted.target_error is None and wanted.budget is not None:
        return sorted({wanted.budget // part for part in _FRACTIONS if wanted.budget // part >= _FEWEST_COLUMNS})
    most = wanted.budget or wanted.most
    return [1 << k for k in range(_LEAST_COLUMNS.bit_length() - 1, (most - 1).bit_length())] + [most]


def candidates(kernel: Kernel, input_dim: int, columns: int, wanted: Wanted, seed: int) -> Iterator[Candidate]:
    """Yield every sampler with its spec, which has at most `columns` output columns or codes."""
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
    """Raise InvalidInput for a map that was not asked for and is too large to be PUT; other maps may still be tried."""
    nbytes = family_of(spec.sampler).frozen_bytes(spec)
    if wanted.map_bytes is not None and nbytes > wanted.map_bytes:
        raise InvalidInput(f"the map's arrays would take {nbytes} bytes; max_map_bytes is {wanted.map_bytes}")


def at_multiples(kernel: Kernel, multiples: Sequence[float]) -> list[Kernel]:
    """Return the kernel at each of these multiples of its length scale; unchanged if it has no length scale.

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
    """Return the names of the datasets that those candidate samplers use which learn from data."""
    every = (
        one
        for kernel in kernels
        for columns in column_counts(wanted)
        for one in _samplers(kernel, input_dim, columns, wanted)
    )
    return {dataset for sampler in every if (dataset := sampler.learned_from) is not None}


def _samplers(kernel: Kernel, input_dim: int, columns: int, wanted: Wanted) -> Sequence[Sampler]:
    """Return the samplers to try with at most `columns` output columns."""
    if wanted.samplers is not None:
        return wanted.samplers
    return [sampler for family in FAMILIES for sampler in family.suggest(kernel, input_dim, columns, wanted.dataset)]


def widest_map_bytes(input_dim: int, wanted: Wanted, kernel: Kernel) -> int:
    """Return the memory in bytes of the frozen arrays of the largest map that may be recommended."""
    widest = (one.spec for one in candidates(kernel, input_dim, column_counts(wanted)[-1], wanted, 0))
    return max((family_of(spec.sampler).frozen_bytes(spec) for spec in widest if isinstance(spec, MapSpec)), default=0)


def fitting(wanted: Wanted, n: int, input_dim: int, kernel: Kernel, *, map_bytes: int, work_bytes: int) -> Wanted:
    """Return the requirements within these limits: if there is no budget, sizes that exceed the limits are dropped.

    A map that learns and that was not asked for is left out by itself if it is too large.
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


def recommended_bytes(n: int, input_dim: int, wanted: Wanted, kernel: Kernel, is_dense: bool = False) -> int:
    """Return the bytes that `recommend` takes beside n rows: n×n matrices, and its widest map with the results.

    Rows that are `is_dense`, or that the kernel makes so, are copied.
    """
    learned, made = 0, 0
    for columns in column_counts(wanted):
        for one in candidates(kernel, input_dim, columns, wanted, 0):
            if isinstance(spec := one.spec, MapSpec):
                its_family = family_of(spec.sampler)
                of_entry = _BYTES_PER_FEATURE if Gives.features in its_family.gives else _BYTES_PER_SAMPLE
                made = max(made, its_family.drawing_bytes(spec) + n * columns * of_entry)
                if spec.sampler.learned_from is not None:
                    learned = max(learned, wanted.learned_rows * (spec.s or columns) * _BYTES_PER_LEARNED)
    stays_sparse = kernel.compares_sparse and not is_dense
    dense = 0 if stays_sparse else _BYTES_PER_ENTRY * (n + wanted.learned_rows) * input_dim
    per_pair = _BYTES_PER_PAIR + (_BYTES_PER_TRAINED_PAIR if wanted.objective is Objective.score else 0)
    return per_pair * n * n + dense + learned + made
