"""The catalogue: every kind a spec may name, described by its own model."""

from typing import Any, get_args

from pydantic import BaseModel, Field

from app.core.diagnostics import DIAGNOSTICS
from app.core.kernels import Kernel
from app.core.maps.fourier.forms import FORMS, Columns
from app.core.model import Kind
from app.core.spec import Sampler


class Catalog(BaseModel):
    """JSON Schemas by family and kind, each with the members `source` and `choose_when`.

    A kind that refuses more than the ranges of its fields say has `limits` too, a list of sentences. Where
    `choose_when` gives a Gram error, it is ‖K − K̂‖/‖K‖ in the Frobenius norm, a mean of ten seeds, for kernel
    `gaussian` and, unless it says otherwise, the form `cos_sin`.
    """

    kernels: dict[str, dict[str, Any]] = Field(description="What may stand in `kernel`.")
    samplers: dict[str, dict[str, Any]] = Field(description="What may stand in `sampler`.")
    forms: dict[str, dict[str, Any]] = Field(description="What may stand in `form`.")
    diagnostics: dict[str, dict[str, Any]] = Field(description="Options of the diagnostics, by kind.")


def catalog() -> Catalog:
    """Describe every registered kind."""
    return Catalog(
        kernels=_described(Kernel),
        samplers=_described(Sampler),
        forms={form.value: {"const": form.value} | _form(columns) for form, columns in FORMS.items()},
        diagnostics={kind: model.model_json_schema() | _advice(model) for kind, model in DIAGNOSTICS.items()},
    )


def _described(union: Any) -> dict[str, dict[str, Any]]:
    models: tuple[type[Kind], ...] = get_args(get_args(union)[0])
    schemas = [model.model_json_schema() | _advice(model) for model in models]
    return {schema["properties"]["kind"]["const"]: schema for schema in schemas}


def _form(columns: Columns) -> dict[str, str]:
    return {"description": columns.description, "source": columns.source, "choose_when": columns.choose_when}


def _advice(model: type[Kind]) -> dict[str, Any]:
    """Members of the catalogue that JSON Schema does not know. It allows them."""
    advice: dict[str, Any] = {"source": model.source, "choose_when": model.choose_when}
    return advice | ({"limits": model.limits} if model.limits else {})
