"""Bodies of requests about indexes, described for the OpenAPI document."""

from typing import Any

from app.api.array_documents import GIVEN, ROWS
from app.api.documents import preferring_body
from app.api.schemas import BINARY, STRING, body, list_of, object_of, schema_of
from app.core.indexes.options import SearchOptions
from app.formats.arrow import Arrow
from app.formats.json import Json
from app.formats.npz import Npz
from app.services.index_spec import AskedIndex

_IDS = list_of(
    {"anyOf": [{"type": "integer"}, {"type": "string", "minLength": 1}]},
    description="One for each vector, each once: whole numbers or strings of up to 1,024 bytes, which are never the "
    "same. `.` and `..` are none, as no address may end so. Those of a dataset that has ids may be left out.",
)
_TAGS = list_of(
    {"type": ["string", "null"]}, description="One for each vector, for searches to go by; null or empty for none."
)
_NPZ = (
    "A `.npz` of `vectors`, `ids`, a 1-D array of whole numbers or strings, and, if there are tags, `tags`, one of "
    "strings."
)
_ARROW = (
    "An Arrow IPC stream of rows, as elsewhere, with a column `id` of whole numbers or strings and, if there are tags, "
    "a column `tag` of strings."
)

INDEX_BODY = preferring_body(schema_of(AskedIndex))
BATCH_BODY = body(
    {
        Json.media_type: {"schema": object_of("VectorsOfIndex", ["vectors"], ids=_IDS, vectors=GIVEN, tags=_TAGS)},
        Npz.media_type: {"schema": {**BINARY, "description": _NPZ}},
        Arrow.media_type: {"schema": {**BINARY, "description": _ARROW}},
    }
)


def _search_body() -> dict[str, Any]:
    schema = schema_of(SearchOptions)
    rows = {
        "vectors": {"oneOf": ROWS["oneOf"], "description": "The queries; instead, `dataset`."},
        "dataset": {**STRING, "description": "Name of a dataset to take queries from."},
        "rows": {"type": "integer", "minimum": 1, "description": "Size of a sample of the dataset; else all rows."},
        "seed": {"type": "integer", "minimum": 0, "description": "Of the sample."},
    }
    return {**schema, "title": "SearchBody", "properties": rows | schema["properties"]}


SEARCH_BODY = body({Json.media_type: {"schema": _search_body()}})
