"""What the OpenAPI document says of diagnostics and recommendations."""

from typing import Any

from pydantic import BaseModel

from app.api.documents import DEFINITIONS, GIVEN, PREFER, REFERENCES, ROWS, applied_headers, taken_headers
from app.core.diagnostics.kinds import DIAGNOSTICS
from app.services.diagnostics import ROW_MEMBERS
from app.services.recommendations import RecommendationOptions

_NUMBER = {"type": "number"}
_NULLABLE = {"type": ["number", "null"]}
_MEMBERS: dict[str, dict[str, Any]] = {
    "vectors": {"oneOf": ROWS["oneOf"], "description": "Rows; instead, `dataset`."},
    "input_dim": {"type": "integer", "minimum": 1, "description": "Length of a row; must be there for sparse rows."},
    "dataset": {"type": "string", "description": "Name of a dataset to take rows from."},
    "rows": {"type": "integer", "minimum": 1, "description": "Size of a sample of the dataset; without it, all rows."},
    "x": {**GIVEN, "description": "Rows; row i goes with row i of y."},
    "y": {**GIVEN, "description": "As many rows."},
    "seed": {"type": "integer", "minimum": 0, "description": "Of the sample."},
}


def _body_schema(model: type[BaseModel], members: tuple[str, ...]) -> dict[str, Any]:
    """The options of a model and the members that rows come in."""
    schema = model.model_json_schema(ref_template=REFERENCES)
    DEFINITIONS.update(schema.pop("$defs", {}))
    properties = {name: _MEMBERS[name] for name in members} | schema["properties"]
    return {**schema, "properties": properties, "additionalProperties": False}


def _object(description: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "description": description, "properties": properties}


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _numbers(names: str, of: dict[str, Any] = _NUMBER) -> dict[str, Any]:
    return dict.fromkeys(names.split(), of)


_FIGURES = {
    "type": "object",
    "properties": _numbers("relative_frobenius relative_spectral max_abs mean_square bias"),
}
_BY_ESTIMATOR = {"type": "object", "additionalProperties": _FIGURES}
_RATE = {"type": "object", "properties": _numbers("rate mean bias rms_error")}
_RATE_OF_BITS = {"type": "object", "properties": _numbers("rate") | _numbers("mean bias rms_error", _NULLABLE)}
_ANSWERS: dict[str, dict[str, Any]] = {
    "gram": _object(
        "gram: `form` is the form measured, null for hashes, which have no `monte_carlo` either; `ratios` are figures "
        "over the mean of Monte Carlo.",
        rows={"type": "integer"},
        form={"type": ["string", "null"]},
        estimators=_BY_ESTIMATOR,
        monte_carlo={
            "type": ["object", "null"],
            "properties": {"seeds": {"type": "integer"}, "mean": _FIGURES, "sd": _FIGURES},
        },
        ratios={"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _NULLABLE}},
    ),
    "box-discrepancy": _object(
        "box-discrepancy: `discrepancy_squared` is null where it leaves the range of float64.",
        box=_list(_NUMBER),
        scales=_list(
            {
                "type": "object",
                "properties": _numbers("box_scale normalized expected_monte_carlo")
                | _numbers("discrepancy_squared log_discrepancy_squared ratio", _NULLABLE),
            }
        ),
    ),
    "max-error": _object(
        "max-error: `bound` is null where no theorem holds.",
        form={"type": "string"},
        samples={"type": "integer"},
        diameters=_list({"type": "object", "properties": _numbers("diameter max rms") | _numbers("bound", _NULLABLE)}),
    ),
    "variance": _object(
        "variance: `closed_form` is the one of `closed_forms` that is this map's, null where none is known.",
        form={"type": ["string", "null"]},
        s={"type": "integer"},
        repeats={"type": "integer"},
        own={"type": ["string", "null"]},
        pairs=_list(
            _object(
                "One pair.",
                exact=_NUMBER,
                closed_form=_NULLABLE,
                closed_forms={"type": "object", "additionalProperties": _NULLABLE},
                empirical={"type": "object", "properties": _numbers("mean variance standard_error")},
                rbf_empirical={"type": ["object", "null"]},
            )
        ),
    ),
    "collisions": _object(
        "collisions: mean, bias and RMS error of each estimate; `rate` is the share of codes that agree. "
        "Pairs that one bit of the index says nothing of, as both rows are of one sign, are left out of the means of "
        "`b_bit`, which are null if no other is there.",
        pairs={"type": "integer"},
        exact={"type": "object", "properties": _numbers("mean")},
        full=_RATE,
        zero_bit=_RATE,
        b_bit=_RATE_OF_BITS,
        rbf={"type": ["object", "null"]},
    ),
}
_SVG = {"image/svg+xml": {"schema": {"type": "string"}}}
_JOB = {"$ref": REFERENCES.format(model="JobRecord")}


def _answers(schema: dict[str, Any], description: str) -> dict[int | str, dict[str, Any]]:
    return {
        200: {
            "description": description,
            "content": {"application/json": {"schema": schema}} | _SVG,
            **applied_headers(),
        },
        202: {
            "description": "It takes long: a job will have the same answer at its `result`.",
            **taken_headers("Link of the job."),
            "content": {"application/json": {"schema": _JOB}},
        },
    }


def _request(schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}, **PREFER}


DIAGNOSTIC_BODY = _request({"anyOf": [_body_schema(model, ROW_MEMBERS[kind]) for kind, model in DIAGNOSTICS.items()]})
DIAGNOSTIC_ANSWER = _answers(
    {"anyOf": list(_ANSWERS.values())}, "The figures; those of gram and max-error, and no others, also as a picture."
)
RECOMMENDATION_BODY = _request(_body_schema(RecommendationOptions, ("vectors", "input_dim", "dataset", "rows")))
_SPEC = {"$ref": REFERENCES.format(model="MapSpec")}
RECOMMENDATION_ANSWER = _answers(
    _object(
        "The trials, the best first; `best` is a spec to PUT.",
        rows={"type": "integer", "description": "How many rows errors were measured on; of more, a sample."},
        target_reached={"type": ["boolean", "null"], "description": "Null where no target_error came."},
        ranked=_list(
            {
                "type": "object",
                "properties": {"spec": _SPEC, "n_output": {"type": "integer"}, "bytes": {"type": "integer"}}
                | _numbers("error_mean error_sd seconds_per_1000_rows"),
            }
        ),
        best=_SPEC,
        skipped=_list(_object("What could not be tried.", sampler={"type": "object"}, columns={}, reason={})),
    ),
    "The ranking; also as a picture, error against columns.",
)
