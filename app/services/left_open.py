"""What a spec may leave to data or to chance, as a client says it.

A client may name how to take a length scale or an input from a dataset, and may have a seed drawn. `asked` makes
numbers of it, and everything below knows only those.
"""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Discriminator, Field, Tag

from app.core.errors import InvalidInput
from app.core.input import MISSING, UNIT_NORM, Fit, Missing
from app.core.kernels import KERNELS
from app.core.length_scales import Heuristic
from app.core.model import NAME_PATTERN, Frozen
from app.core.spec import MapSpec

SCALED_KINDS = tuple(kind for kind, model in KERNELS.items() if "length_scale" in model.model_fields)
"""The kernels that have a length scale."""
ANY_SCALE = 1.0
"""Stands for a length scale that is not known yet."""
LEARNED_FROM = "/sampler/dataset"
"""Where a spec names the dataset that its sampler learns from."""

DatasetName = Annotated[str, Field(pattern=NAME_PATTERN, description="Name of the dataset that it is taken from.")]
_Name = Annotated[Heuristic, Field(strict=False)]


class ScalePerColumn(Frozen):
    """One length scale for each column.

    It is one for all times the column's standard deviation over the root mean square of all columns' standard
    deviations; of a constant column, the one for all.
    """

    per_column: Annotated[_Name, Field(description="How the one for all columns is taken.")]
    dataset: DatasetName | None = None


class ScaleOfRows(Frozen):
    """A kernel whose length scale is taken from the rows of a dataset, after `input`. Other members are as of its kind.

    Without `dataset`, it is the dataset of the sampler or of the input.
    """

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})

    kind: Literal[SCALED_KINDS]  # type: ignore[valid-type]
    length_scale: Annotated[
        Annotated[_Name, Tag("string")] | Annotated[ScalePerColumn, Tag("object")],
        Discriminator(lambda value: "string" if isinstance(value, str) else "object"),
        Field(
            description="nearest_neighbor: the mean distance of a row to its tenth nearest neighbour among all rows. "
            "median: the median distance of two rows. Distances are of the kernel's metric."
        ),
    ]
    dataset: DatasetName | None = None

    @property
    def heuristic(self) -> Heuristic:
        """How the one for all columns is taken."""
        return self.length_scale.per_column if isinstance(self.length_scale, ScalePerColumn) else self.length_scale

    @property
    def named(self) -> tuple[str, str] | None:
        """The dataset, and where it is named; None where it is not. InvalidInput if it is named twice."""
        inside = self.length_scale.dataset if isinstance(self.length_scale, ScalePerColumn) else None
        if inside is None:
            return None if self.dataset is None else (self.dataset, "/kernel/dataset")
        if self.dataset is not None:
            raise InvalidInput("the dataset of the length scale is named twice", "/kernel/length_scale/dataset")
        return inside, "/kernel/length_scale/dataset"


class InputOfRows(Frozen):
    """An input whose center and scale are taken from the columns of a dataset once, and are the map's from then on."""

    fit: Annotated[Fit, Field(strict=False)]
    dataset: DatasetName
    missing: Missing = Field("refuse", description=MISSING)
    unit_norm: bool = Field(False, description=UNIT_NORM)


class LeftOpen(Frozen):
    """The input, length scale and seed that a spec leaves to data or to chance; each may be settled already."""

    input: InputOfRows | None = None
    """How the input is taken."""
    kernel: ScaleOfRows | None = None
    """How the length scale is taken."""
    draws_seed: bool = False

    @property
    def text(self) -> str:
        """As it is stored; empty for nothing."""
        return self.model_dump_json(exclude_defaults=True) if self != NOTHING else ""

    def shown(self, spec: MapSpec) -> dict[str, Any]:
        """A spec as the client has put it, but for defaults that are filled in, where numbers are not known yet."""
        members = spec.model_dump(mode="json")
        if self.input is not None:
            members["input"] = self.input.model_dump(mode="json")
        if self.kernel is not None:
            members["kernel"] |= self.kernel.model_dump(mode="json", exclude_none=True)
        if self.draws_seed:
            members["seed"] = None
        return members

    def placed(self, spec: MapSpec) -> MapSpec:
        """The spec with what stands for numbers that are not known yet in their place."""
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
    """A spec as a client has put it."""

    spec: MapSpec
    """It has something in the place of numbers that are left open."""
    left_open: LeftOpen = NOTHING

    @property
    def datasets(self) -> list[tuple[str, str]]:
        """The datasets that the map is made from, each with the pointer to where it is named.

        Raises:
            InvalidInput: that of the length scale is named nowhere, or twice.
        """
        learned, fit, scale = self.spec.sampler.learned_from, self.left_open.input, self.left_open.kernel
        named = [] if learned is None else [(learned, LEARNED_FROM)]
        named += [] if fit is None else [(fit.dataset, "/input/dataset")]
        return named if scale is None else [*named, self.dataset_of(scale)]

    def dataset_of(self, scale: ScaleOfRows) -> tuple[str, str]:
        """The dataset that the length scale is taken from, and where the client has named it.

        Raises:
            InvalidInput: it is named nowhere, or twice.
        """
        others = {
            LEARNED_FROM: self.spec.sampler.learned_from,
            "/input/dataset": None if self.left_open.input is None else self.left_open.input.dataset,
        }
        found = [scale.named, *((name, pointer) for pointer, name in others.items() if name is not None)]
        first = next((one for one in found if one is not None), None)
        if first is None:
            raise InvalidInput(
                "no dataset is named to take the length scale from: name it beside it, as the member dataset of kernel",
                "/kernel/length_scale",
            )
        return first


class Settled(NamedTuple):
    """A spec of numbers, ready to be built."""

    spec: MapSpec
    asked: str = ""
    """The members that were left open, as they are stored; empty if none was."""
    warnings: tuple[str, ...] = ()
    """Doubts about the numbers, for the client."""
