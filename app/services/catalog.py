"""The catalogue: every kind a spec may name, described by its own model."""

from typing import Any, get_args

from pydantic import BaseModel

from app.core.kernels import Kernel
from app.core.samplers import Sampler
from app.core.spec import FORMS


class Catalog(BaseModel):
    """JSON Schemas by family and kind."""

    kernels: dict[str, dict[str, Any]]
    samplers: dict[str, dict[str, Any]]
    forms: dict[str, dict[str, Any]]
    diagnostics: dict[str, dict[str, Any]]


def catalog() -> Catalog:
    """Describe every registered kind."""
    return Catalog(
        kernels=_schemas(Kernel),
        samplers=_schemas(Sampler),
        forms={form.value: {"const": form.value, "description": text} for form, text in FORMS.items()},
        diagnostics={},
    )


def _schemas(union: Any) -> dict[str, dict[str, Any]]:
    models: tuple[type[BaseModel], ...] = get_args(get_args(union)[0])
    schemas = [model.model_json_schema() for model in models]
    return {schema["properties"]["kind"]["const"]: schema for schema in schemas}
