"""Bodies of requests about indexes: vectors with their ids and tags, and searches."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from app.core.arrays import Array, PostedRows
from app.core.datasets import Reference
from app.core.errors import InvalidInput
from app.core.indexes.options import Batch, CheckCount, SearchOptions
from app.formats.arrow import Arrow
from app.formats.arrow_ipc.rows import ID, TAG, columns_of
from app.formats.base import Body
from app.formats.json import Json
from app.formats.json_body import members, rows_or_reference, vectors_or_dataset
from app.formats.json_lists import called, is_list
from app.formats.json_measurements import Parse, written
from app.formats.npz import Npz
from app.formats.npz import members as arrays_of


def read_json(body: Body, width: int, check_count: CheckCount) -> Batch:
    """Read an object of `vectors`, `ids` and `tags`."""
    posted = members(body, ["vectors"], ["ids", "tags"], of_rows=["vectors", "ids", "tags"])
    ids, tags = (_listed(posted, member, check_count) for member in ("ids", "tags"))
    vectors = posted["vectors"]
    if is_list(vectors):
        check_count(len(vectors))
    return Batch(rows_or_reference(vectors, width, "/vectors"), ids, tags)


def read_npz(body: Body, width: int, check_count: CheckCount) -> Batch:
    """Read a .npz of `vectors`, `ids` and `tags`."""
    del width
    posted = arrays_of(body, ["vectors", "ids"], ["tags"], of_strings=("ids", "tags"))
    ids = _elements(posted["ids"], "ids", "iuU", "whole numbers or strings", check_count)
    tags = _elements(posted["tags"], "tags", "U", "strings", check_count) if "tags" in posted else None
    return Batch(posted["vectors"], ids, tags)


def read_arrow(body: Body, width: int, check_count: CheckCount) -> Batch:
    """Read a stream with columns `id` and `tag` beside the rows."""
    rows, beside = columns_of(body, width, (ID, TAG))
    check_count(len(rows))
    ids, tags = (beside[name].listed() if name in beside else None for name in (ID, TAG))
    if ids is None:
        raise InvalidInput(f"the Arrow stream has no column {ID!r}; each vector needs an id", f"/{ID}")
    return Batch(rows, ids, tags)


BATCHES: dict[str, Callable[[Body, int, CheckCount], Batch]] = {
    Json.media_type: read_json,
    Npz.media_type: read_npz,
    Arrow.media_type: read_arrow,
}
"""What reads vectors that are put into an index, by media type; it is told the length of a row."""


def search(body: Body, width: int, parse: Parse) -> tuple[SearchOptions, PostedRows | Reference]:
    """Read the options and the vectors of a search; `parse` reads the former."""
    own = SearchOptions.model_fields
    document = members(body, [], ["vectors", "dataset", "rows", "seed", *own], of_rows=["vectors"])
    options: SearchOptions = parse(SearchOptions, written({key: document[key] for key in document if key in own}, body))
    if "seed" in document and "dataset" not in document:
        raise InvalidInput("seed is of the sample of a dataset, and no dataset came", "/seed")
    return options, vectors_or_dataset(document, width)


def _listed(posted: dict[str, Any], member: str, check_count: CheckCount) -> list[object] | None:
    """A list of a body as Python has it; None where it did not come."""
    if member not in posted:
        return None
    if not is_list(value := posted[member]):
        raise InvalidInput(f"{called(value)} came; a list with one of them for each vector is wanted", f"/{member}")
    check_count(len(value))
    return [*value]


def _elements(array: Array, member: str, kinds: str, wanted: str, check_count: CheckCount) -> list[object]:
    """The elements of an array of a .npz as Python has them."""
    if array.ndim != 1 or array.dtype.kind not in kinds:
        detail = f"{array.dtype} of shape {array.shape} came; a 1-D array of {wanted} is wanted"
        raise InvalidInput(detail, f"/{member}")
    check_count(len(array))
    if array.dtype.kind == "U":
        points = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if points.size and points.max() > sys.maxunicode:
            raise InvalidInput(f"a string of {member} has characters that are none", f"/{member}")
    return [*array.tolist()]
