"""The bases of every model a client can write."""

from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from app.core.errors import InvalidInput

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
"""The names that maps and datasets may have."""


class Frozen(BaseModel):
    """Immutable, refuses unknown fields, and takes JSON values as they are (no "7" for 7, no NaN)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def check_entries(values: object, input_dim: int, name: str, pointer: str, instead: str = "") -> None:
    """Raise InvalidInput for a list that has not one entry for each coordinate; what is no list passes."""
    if isinstance(values, tuple) and len(values) != input_dim:
        raise InvalidInput(f"{name} has {len(values)} entries; input_dim {input_dim} wants as many{instead}", pointer)


def _describe_tag(schema: dict[str, Any]) -> None:
    if "kind" in schema.get("properties", {}):
        schema["properties"]["kind"]["description"] = "Tells this kind from the others of its family."


class Kind(Frozen):
    """A kind that a spec may name. Its class attributes are what the catalogue says of it beside its schema."""

    model_config = ConfigDict(json_schema_extra=_describe_tag)

    source: ClassVar[str]
    """Paper and section it is taken from."""
    choose_when: ClassVar[str]
    """When to take it and when not, with measured figures where there are any."""
    limits: ClassVar[tuple[str, ...]] = ()
    """Each a rule, beyond the ranges of the fields, that specs are refused by, with the numbers that the checks use."""

    @classmethod
    def kind_name(cls) -> str:
        """The only value of the field `kind`."""
        name: str = get_args(cls.model_fields["kind"].annotation)[0]
        return name


class DumpOf:
    """Annotates a dict in the type of an answer: it is what a model of this type is as JSON, and has its schema."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(TypeAdapter(self._model).core_schema)
