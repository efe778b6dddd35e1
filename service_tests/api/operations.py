"""Every operation of the service, as the OpenAPI document has it."""

import json
from pathlib import Path

DOCUMENT = json.loads((Path(__file__).parents[2] / "openapi" / "openapi.json").read_text())
OPERATIONS: dict[str, tuple[str, str]] = {
    operation["operationId"]: (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
"""The method and the path of each, by its id."""
