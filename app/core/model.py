"""Base classes of all models that a client can write."""

import re
from inspect import getdoc
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from app.core.errors import InvalidInput

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
"""Pattern of the names of maps and datasets."""


class Described(BaseModel):
    """Model whose members are described by the docstrings below them."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Frozen(Described):
    """Immutable model that refuses unknown fields and converts no JSON values (no "7" for 7, no NaN)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def check_entries(values: object, input_dim: int, name: str, pointer: str, instead: str = "") -> None:
    """Raise InvalidInput for a list that does not have one entry per coordinate; other values pass."""
    if isinstance(values, tuple) and len(values) != input_dim:
        raise InvalidInput(f"{name} has {len(values)} entries; input_dim {input_dim} wants as many{instead}", pointer)


_CHOOSE_WHEN = "\n\nChoose when:\n"


def section_of(kind: type, title: str) -> str:
    """Return a section of a class docstring as one line; "" if there is no such section."""
    found = re.search(rf"\n{title}:\n(.*?)(?=\n\S|$)", getdoc(kind) or "", re.DOTALL)
    return "" if found is None else " ".join(found[1].split())


def _describe(schema: dict[str, Any]) -> None:
    """Describe the field `kind` in a schema, and drop the section "Choose when" from the description."""
    if "kind" in schema.get("properties", {}):
        schema["properties"]["kind"]["description"] = "Tells this kind from the others of its family."
    if "description" in schema:
        schema["description"] = schema["description"].partition(_CHOOSE_WHEN)[0]


def advice_in(kind: type) -> dict[str, str]:
    """Return what a docstring says besides its section "Choose when", and that section as one line."""
    description = (getdoc(kind) or "").partition(_CHOOSE_WHEN)[0]
    return {"description": description, "choose_when": section_of(kind, "Choose when")}


class Kind(Frozen):
    """Kind of kernel, sampler or diagnostic.

    Class attributes hold what the catalogue shows beside the schema. The section "Choose when" of the docstring says
    when to choose the kind and when not, with measured figures if there are any.
    """

    model_config = ConfigDict(json_schema_extra=_describe)

    source: ClassVar[str]
    """Paper and section that the kind is taken from."""
    limits: ClassVar[tuple[str, ...]] = ()
    """Rules by which specs are refused, beyond the ranges of the fields, with the numbers that the checks use."""

    @classmethod
    def kind_name(cls) -> str:
        """Return the only value of the field `kind`."""
        name: str = get_args(cls.model_fields["kind"].annotation)[0]
        return name


class DumpOf:
    """Annotation of a dict in an answer's type: the dict is a `model` dumped as JSON, and has the model's schema."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(TypeAdapter(self._model).core_schema)


RFF = "Rahimi and Recht (2007), Random features for large-scale kernel machines"
QMC = "Avron, Sindhwani, Yang, Mahoney (2016), Quasi-Monte Carlo feature maps for shift-invariant kernels"
MM = "Shen, Yang, Wang (2017), Random features for shift-invariant kernels with moment matching"
GQ = "Dao, De Sa, Ré (2017), Gaussian quadrature for kernel features"
GMM = "Li (2017), Linearized GMM kernels and normalized random Fourier features"
