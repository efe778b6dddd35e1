"""Deferred fields of specs: numbers that a spec leaves to data or chance, and their resolution before a map is built.

A client may say how to take a length scale or a preprocessing (`input`) from a dataset, and may leave the seed to be
drawn. This module resolves these fields to numbers, and all code below it sees only numbers. The fields are stored
beside the map as the client sent them, so that the same request finds the map again.
"""

import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Discriminator, Field, Tag, ValidationError
from pydantic_core import from_json, to_json
from scipy import sparse

from app.core.arrays import Rows, complete
from app.core.building import RowsOf
from app.core.datasets import Reference
from app.core.errors import InvalidInput
from app.core.input import MISSING, UNIT_NORM, Fit, Input, MissingOfRows, fit_input, mostly_missing
from app.core.json_text import CheckSize, check_names, check_options
from app.core.kernels import KERNELS, Kernel
from app.core.length_scales import Heuristic, as_they_are, length_scale, per_column
from app.core.model import NAME_PATTERN, Frozen
from app.core.neighbours import Seen
from app.core.progress import Pause, no_pause
from app.core.spec import MapSpec
from app.services.datasets import Datasets
from app.services.errors import DatasetNotFound

SCALED_KINDS = tuple(kind for kind, model in KERNELS.items() if "length_scale" in model.model_fields)
"""Kinds of kernels that have a length scale."""
ANY_SCALE = 1.0
"""Placeholder for a length scale that is not known yet."""
LEARNED_FROM = "/sampler/dataset"
"""JSON pointer to the dataset that a spec's sampler learns from."""

DatasetName = Annotated[str, Field(pattern=NAME_PATTERN, description="Name of the dataset that it is taken from.")]
_Name = Annotated[Heuristic, Field(strict=False)]


class ScalePerColumn(Frozen):
    """One length scale for each column.

    A column's length scale is the common length scale times the column's standard deviation, divided by the root mean
    square of all columns' standard deviations. A constant column has the common length scale.
    """

    per_column: _Name
    """How the length scale of each column is computed; see `length_scale`."""
    dataset: DatasetName | None = None


class ScaleOfRows(Frozen):
    """A kernel whose length scale is taken from the rows of a dataset, after `input`. Other members depend on its kind.

    If `dataset` is missing, the dataset of the sampler or of the input is used.
    """

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})

    kind: Literal[SCALED_KINDS]  # type: ignore[valid-type]
    """Kind of the kernel."""
    length_scale: Annotated[
        Annotated[_Name, Tag("string")] | Annotated[ScalePerColumn, Tag("object")],
        Discriminator(lambda value: "string" if isinstance(value, str) else "object"),
    ]
    """How the length scale is computed from rows. nearest_neighbor: mean distance of a row to its tenth nearest
    neighbour among all rows. median: median distance of two rows. Distances use the kernel's metric.
    """
    dataset: DatasetName | None = None

    @property
    def heuristic(self) -> Heuristic:
        """How the common length scale of all columns is taken."""
        return self.length_scale.per_column if isinstance(self.length_scale, ScalePerColumn) else self.length_scale

    @property
    def named(self) -> tuple[str, str] | None:
        """The dataset and the pointer to its name; None if no dataset is named. InvalidInput if it is named twice."""
        inside = self.length_scale.dataset if isinstance(self.length_scale, ScalePerColumn) else None
        if inside is None:
            return None if self.dataset is None else (self.dataset, "/kernel/dataset")
        if self.dataset is not None:
            raise InvalidInput("the dataset of the length scale is named twice", "/kernel/length_scale/dataset")
        return inside, "/kernel/length_scale/dataset"


class InputOfRows(Frozen):
    """An input whose center and scale are computed once from the columns of a dataset, and stay fixed for the map."""

    fit: Annotated[Fit, Field(strict=False)]
    """What to compute from the columns."""
    dataset: DatasetName
    """If missing, the dataset of the sampler or of the length scale is used."""
    missing: MissingOfRows = Field("refuse", description=f"{MISSING} Or the `mean` or the `median` of its column.")
    unit_norm: bool = Field(False, description=UNIT_NORM)


class LeftOpen(Frozen):
    """Deferred fields of a spec: input, length scale and seed, as far as data or chance must determine them."""

    input: InputOfRows | None = None
    """How the input is taken from a dataset."""
    kernel: ScaleOfRows | None = None
    """How the length scale is taken from a dataset."""
    draws_seed: bool = False

    @property
    def text(self) -> str:
        """The deferred fields as they are stored, in JSON; empty if there are none."""
        return self.model_dump_json(exclude_defaults=True) if self != NOTHING else ""

    def shown(self, spec: MapSpec) -> MapSpec | dict[str, Any]:
        """Return a spec with defaults filled in, and deferred fields as the client sent them, for a response."""
        if self == NOTHING and not spec.fills_in:
            return spec
        members = spec.shown()
        if self.input is not None:
            members["input"] = self.input.model_dump(mode="json")
        if self.kernel is not None:
            members["kernel"] |= self.kernel.model_dump(mode="json", exclude_none=True)
        if self.draws_seed:
            members["seed"] = None
        return members

    def with_placeholders(self, spec: MapSpec) -> MapSpec:
        """Return the spec with placeholders for the deferred fields."""
        changes: dict[str, Any] = {}
        if self.input is not None:
            changes["input"] = None
        if self.kernel is not None:
            changes["kernel"] = spec.kernel.model_copy(update={"length_scale": ANY_SCALE})
        if self.draws_seed:
            changes["seed"] = 0
        return spec.model_copy(update=changes)


NOTHING = LeftOpen()


class AskedSpec(NamedTuple):
    """Spec as the client sent it."""

    spec: MapSpec
    """The spec, with placeholders for deferred fields."""
    left_open: LeftOpen = NOTHING

    @property
    def datasets(self) -> list[tuple[str, str]]:
        """The datasets that the map is made from, each with the pointer to its name; that of the length scale is last.

        Raises:
            InvalidInput: the dataset of the length scale is not named, or is named twice.
        """
        learned, fit, scale = self.spec.sampler.learned_from, self.left_open.input, self.left_open.kernel
        named = [] if learned is None else [(learned, LEARNED_FROM)]
        named += [] if fit is None else [(fit.dataset, "/input/dataset")]
        if scale is None:
            return named
        of_scale = scale.named or next(iter(named), None)
        if of_scale is None:
            raise InvalidInput(
                "no dataset to take the length scale from: name it as dataset of kernel", "/kernel/length_scale"
            )
        return [*named, of_scale]


class Settled(NamedTuple):
    """Spec without deferred fields, ready to be built."""

    spec: MapSpec
    asked: str = ""
    """The deferred fields, as they are stored; empty if there were none."""
    warnings: tuple[str, ...] = ()
    """Doubts about the resolved numbers, for the client."""


Parse = Callable[[type[Any], bytes | bytearray], Any]
"""Parses JSON as a pydantic model, or raises an error that names the invalid member."""

# Values that a client may send as a length scale.
_SCALES = 'a number, a list of one for each column, "nearest_neighbor", "median" or {"per_column": one of these two}'
# A drawn seed has at most this many bits, so that a client whose numbers are doubles can send it again exactly.
_SEED_BITS = 53


def asked_spec(body: bytes | bytearray, parse: Parse, check_size: CheckSize) -> AskedSpec:
    """Read a spec that may have deferred fields; raise what `parse` raises.

    Raises:
        InvalidInput: the kernel has no length scale, or no dataset is named to take it from; or the spec has so many
            small parts that reading it would take too long.
        TooLarge: `check_size` refuses the size.
    """
    check_options(body, check_size)
    check_names(body)
    with suppress(ValidationError):
        return AskedSpec(
            MapSpec.model_validate_json(body).with_defaults()
        )  # the usual case, in which the body is parsed only once
    try:
        document = from_json(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return AskedSpec(parse(MapSpec, body).with_defaults())
    kernel, scale = without_scale(document.get("kernel"), parse)
    fit = fit_of(document.get("input"), parse, _dataset_beside(document.get("sampler"), scale))
    left_open = LeftOpen(input=fit, kernel=scale, draws_seed=document.get("seed", 0) is None)
    settled_later = ["input"] * (fit is not None) + ["seed"] * left_open.draws_seed
    closed = {name: value for name, value in document.items() if name not in settled_later}
    if scale is not None:
        closed["kernel"] = kernel
    asked = AskedSpec(parse(MapSpec, to_json(closed)).with_defaults(), left_open)
    _ = asked.datasets  # raises InvalidInput if a dataset is not named
    return asked


def _dataset_beside(sampler: Any, scale: ScaleOfRows | None) -> str | None:
    """Return the dataset of a sampler as it came, or of a length scale; None if neither names one."""
    learned_from = sampler.get("dataset") if isinstance(sampler, dict) else None
    named = None if scale is None else scale.named
    return learned_from if isinstance(learned_from, str) else named and named[0]


def fit_of(described: Any, parse: Parse, beside: str | None) -> InputOfRows | None:
    """Read how an input is taken from a dataset; None for an input of numbers. Raise what `parse` raises.

    A name stands for an object with this `fit`. An input that names no dataset is taken from the dataset `beside` it.
    """
    described = {"fit": described} if isinstance(described, str) else described
    if not isinstance(described, dict) or "fit" not in described:
        return None
    named = {} if beside is None else {"dataset": beside}
    fit: InputOfRows = parse(_InputMember, to_json({"input": named | described})).input
    return fit


def without_scale(kernel: Any, parse: Parse, place: str = "") -> tuple[Any, ScaleOfRows | None]:
    """Return a kernel with a placeholder for a deferred length scale, and how that length scale is taken, or None.

    `place` is the index of the kernel in a list, "" if it is not in a list. Raise what `parse` raises, and InvalidInput
    for a kernel that has no length scale.
    """
    if not isinstance(kernel, dict) or "length_scale" not in kernel:
        return kernel, None
    named, kind = kernel["length_scale"], kernel.get("kind")
    if isinstance(named, list | int | float) and not isinstance(named, bool):
        return kernel, None
    kind = kind if isinstance(kind, str) else ""
    if kind in KERNELS and kind not in SCALED_KINDS:
        raise InvalidInput(f"kernel {kind} has no length_scale", "/kernel/length_scale")
    if kind in KERNELS and (named not in list(Heuristic) if isinstance(named, str) else not _is_per_column(named)):
        came = "an object without per_column" if isinstance(named, dict) else json.dumps(named)[:80]
        raise InvalidInput(f"expected {_SCALES}, got {came}", "/kernel/length_scale")
    closed = {name: value for name, value in kernel.items() if name != "dataset"} | {"length_scale": ANY_SCALE}
    if kind not in KERNELS:
        return closed, None
    if place:  # so that an error of `parse` names the place
        scales: dict[str, ScaleOfRows] = parse(_KernelMembers, to_json({"kernel": {place: kernel}})).kernel
        return closed, scales[place]
    return closed, parse(_KernelMember, to_json({"kernel": kernel})).kernel


def _is_per_column(named: Any) -> bool:
    return isinstance(named, dict) and "per_column" in named


def draw_seed(asked: AskedSpec) -> AskedSpec:
    """Return the spec with a drawn seed if its seed is left to chance, otherwise unchanged."""
    spec, left_open = asked
    seed = secrets.randbits(_SEED_BITS) if left_open.draws_seed else spec.seed
    return AskedSpec(spec.model_copy(update={"seed": seed}), left_open)


def resolve(asked: AskedSpec, rows_of: RowsOf, threads: int, pause: Pause = no_pause) -> Settled:
    """Return the spec with numbers for all fields that are deferred to datasets; its seed must be drawn already.

    With many rows, `pause` is called between steps of a quarter of a second.

    Raises:
        InvalidInput: a dataset yields no input or length scale. Whatever `rows_of` raises is raised too.
    """
    spec, left_open = asked
    changes: dict[str, Any] = {"input": spec.input}
    warnings: tuple[str, ...] = ()
    if left_open.input is not None:
        fit = left_open.input
        rows = rows_of(fit.dataset, "/input/dataset")
        changes["input"] = fit_input(fit.fit, rows, fit.missing, fit.unit_norm, pause=pause)
        warnings = mostly_missing(rows, fit.dataset)
        warnings += _zero_rows(changes["input"], rows, spec.kernel, fit.dataset, pause)
    if left_open.kernel is not None:
        name, pointer = asked.datasets[-1]
        rows = rows_of(name, pointer)
        seen = after_input(changes["input"], pointer)
        how: dict[str, Any] = {"seen": seen, "pause": pause}
        found = length_scale(left_open.kernel.heuristic, rows, spec.kernel.metric, threads=threads, **how)
        scale = scale_of(left_open.kernel, found, rows, **how)
        changes["kernel"] = spec.kernel.model_copy(update={"length_scale": scale})
    # Parsed again, so that it equals the spec of a client that sends the spec of the record.
    numbers = MapSpec.model_validate_json(spec.model_copy(update=changes).canonical())
    return Settled(numbers, left_open.text, warnings)


def scale_of(
    wanted: ScaleOfRows, found: float, rows: Rows, *, seen: Seen = as_they_are, pause: Pause = no_pause
) -> float | tuple[float, ...]:
    """Return the length scale `found` of rows, or one for each column if that is wanted.

    Raises what `per_column` does.
    """
    return per_column(found, rows, seen=seen, pause=pause) if isinstance(wanted.length_scale, ScalePerColumn) else found


def _zero_rows(wanted: Input, rows: Rows, kernel: Kernel, dataset: str, pause: Pause) -> tuple[str, ...]:
    """Return a warning if rows of a dataset are all zero after the input, and the kernel refuses such rows."""
    try:
        kernel.prepare(sparse.csr_array((1, rows.shape[1])))
    except InvalidInput:
        zeroed = wanted.count_zero_rows(rows, pause)
        if zeroed:
            return (
                f"{zeroed} of the {rows.shape[0]} rows of dataset {dataset!r} are all zero after this input, and "
                f"kernel {kernel.kind} refuses such rows: another fit may leave none",
            )
    return ()


def after_input(wanted: Input | None, pointer: str) -> Seen:
    """Return a function that applies the input to a dataset's rows; errors point to `pointer`, which names the data."""
    if wanted is None:
        return lambda rows: as_they_are(complete(rows, pointer))
    return lambda rows: wanted.apply(rows, pointer)


def rows_of(datasets: Datasets, width: int, name: str, pointer: str) -> Rows:
    """Return the rows of the dataset that is named at `pointer`; raise InvalidInput if there is none of this width."""
    try:
        rows, _, _ = datasets.read(Reference(name))
    except DatasetNotFound as error:
        raise InvalidInput(str(error), pointer) from error
    if rows.shape[1] != width:
        raise InvalidInput(f"dataset {name!r} has {rows.shape[1]} columns; input_dim {width} wants as many", pointer)
    return rows


class _KernelMember(Frozen):
    kernel: ScaleOfRows


class _KernelMembers(Frozen):
    kernel: dict[str, ScaleOfRows]


class _InputMember(Frozen):
    input: InputOfRows
