"""The named examples of the OpenAPI document: bodies, answers that the service has given, and parameters.

Bodies lie in `openapi/examples`. A file's name says all: `operation.title.query.json`. The title is the example's name,
the query what its request takes besides; it may be left out. Answers lie in `openapi/answers`, as
`operation.status.title.json`, or `.txt` where they are no JSON; `python -m docs.answers` records them.
"""

import json
from pathlib import Path
from typing import Any

# Beside this file in an installed wheel, at the top of the source otherwise.
_INSTALLED, _SOURCE = Path(__file__).parent, Path(__file__).parents[2] / "openapi"
_JSON = "application/json"
_DIGEST = '"sha256:e04032f0dc828464a5e911477c29b7255c0a9174e2e356299232ba376d06cc72"'
PARAMETERS: dict[str, Any] = {
    "name": "letters",
    "kind": "gram",
    "slug": "map-not-found",
    "id": "01a1fee42adea1278eab8453",
    "delete_vector.id": "7",
    "delete_vector.kind": "integer",
    "revoke_key.id": "5f2c9a0b7d1e4c38",
    "ttl": 3600,
    "prefix": "let",
    "cursor": "letters",
    "list_jobs.cursor": "01a1fee42adea1278eab8453",
    "state": "running",
    "encoding": "b_bit",
    "bits": 8,
    "bits_of": "pair",
    "rows_per_band": 16,
    "of": "vectors",
    "gamma": 2.0,
    "If-Match": _DIGEST,
    "If-None-Match": _DIGEST,
    "If-Range": _DIGEST,
    "Range": "bytes=0-1048575",
    "X-Request-ID": "nightly-run-17",
    "format": "onnx",
    "exact": True,
    "dry_run": True,
}
"""Examples of parameters without a default, by name, or by operation and name where that is not enough."""


def add_named_examples(paths: dict[str, Any]) -> None:
    """Put each example beside the schema that it is of, in the member `paths` of the document.

    Raises:
        KeyError: a file is named after no operation, or after one without such a body or answer.
    """
    operations = {one["operationId"]: one for path in paths.values() for one in path.values()}
    for file in _files("examples"):
        operation, title, *query = file.name.removesuffix(".json").split(".")
        told = title.replace("_", " ") + (f", with ?{'.'.join(query)}" if query else "")
        body = operations[operation]["requestBody"]["content"][_JSON]
        _add(body, title, told, json.loads(file.read_text()))
    for file in _files("answers"):
        operation, status, title, suffix = file.name.split(".")
        content = operations[operation]["responses"][status]["content"]
        answer = content[_JSON] if suffix == "json" else next(iter(content.values()))
        text = file.read_text()
        _add(answer, title, title.replace("_", " "), json.loads(text) if suffix == "json" else text)
    for name, operation in operations.items():
        for parameter in operation.get("parameters", ()):
            _add_to_parameter(parameter, name)


def _files(folder: str) -> list[Path]:
    return sorted(next(top / folder for top in (_INSTALLED, _SOURCE) if (top / folder).is_dir()).iterdir())


def _add(described: dict[str, Any], title: str, summary: str, value: Any) -> None:
    described.setdefault("examples", {})[title] = {"summary": summary, "value": value}


def _add_to_parameter(parameter: dict[str, Any], operation: str) -> None:
    """Its default is the example of a parameter; of the others `PARAMETERS` has one."""
    known = parameter["schema"].get("default") or PARAMETERS.get(
        f"{operation}.{parameter['name']}", PARAMETERS.get(parameter["name"])
    )
    if known is not None and "example" not in parameter:
        parameter["example"] = known
