"""The example bodies of `openapi/examples`, as named examples of the OpenAPI document.

A file's name says all: `operation.title.query.json`. The title is the example's name, the query what its request takes
besides; it may be left out.
"""

import json
from pathlib import Path
from typing import Any

# Beside this file in an installed wheel, at the top of the source otherwise.
_FOLDERS = (Path(__file__).parent / "examples", Path(__file__).parents[2] / "openapi" / "examples")


def add_named_examples(paths: dict[str, Any]) -> None:
    """Put each example beside the schema of its operation's JSON body, in the member `paths` of the document.

    Raises:
        KeyError: a file is named after no operation, or after one without a JSON body.
    """
    operations = {one["operationId"]: one for path in paths.values() for one in path.values()}
    folder = next(folder for folder in _FOLDERS if folder.is_dir())
    for file in sorted(folder.glob("*.json")):
        operation, title, *query = file.name.removesuffix(".json").split(".")
        told = title.replace("_", " ") + (f", with ?{'.'.join(query)}" if query else "")
        body = operations[operation]["requestBody"]["content"]["application/json"]
        body.setdefault("examples", {})[title] = {"summary": told, "value": json.loads(file.read_text())}
