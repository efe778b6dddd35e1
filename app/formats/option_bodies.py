"""Request bodies of options and rows, for indexes, diagnostics, recommendations and advice; writers of some answers."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import orjson
from pydantic import BaseModel

from app.core.arrays import Array, PostedRows
from app.core.datasets import Reference
from app.core.diagnostics import Diagnostic, Finding, Takes
from app.core.drawing import Drawing
from app.core.errors import InvalidInput
from app.core.indexes.advice import AdviceOptions
from app.core.indexes.options import Batch, CheckCount, SearchOptions
from app.core.json_text import check_options
from app.core.recommendations.candidates import RecommendationOptions
from app.formats.arrow import Arrow
from app.formats.arrow_ipc.columns import columns_of
from app.formats.base import Body, Buffer, Posted
from app.formats.json import Json
from app.formats.json.body import dimension, members, refuse_sample, rows_or_reference, vectors_or_dataset
from app.formats.json.lists import describe, is_list
from app.formats.npz import Npz
from app.formats.npz import members as arrays_of
from app.pictures import PNG, SVG
from bochner_client.tables import ID, TAG

Parse = Callable[[type[Any], Buffer], Any]
"""Parses JSON as a pydantic model, or raises an error that names the invalid member."""

Options = TypeVar("Options", bound=BaseModel)
_SAMPLE = ("vectors", "dataset", "rows", "seed")
ROW_MEMBERS: dict[Takes, tuple[str, ...]] = {
    Takes.nothing: (),
    Takes.rows: _SAMPLE,
    Takes.optional_rows: _SAMPLE,
    Takes.optional_pairs: ("x", "y"),
}
"""Members of a body that hold rows. If a diagnostic has an option `seed`, it is also the seed of the sample."""
ROW_MEMBERS_TO_RECOMMEND_FOR = ("vectors", "input_dim", "dataset", "rows")


def read_json(body: Body, width: int, check_count: CheckCount) -> Batch:
    """Read an object with `vectors`, `ids` and `tags`."""
    posted = members(body, ["vectors"], ["ids", "tags"], of_rows=["vectors", "ids", "tags"])
    ids, tags = (_read_list(posted, member, check_count) for member in ("ids", "tags"))
    if is_list(vectors := posted["vectors"]):
        check_count(len(vectors))
    return Batch(rows_or_reference(vectors, width, "/vectors"), ids, tags)


def read_npz(body: Body, width: int, check_count: CheckCount) -> Batch:
    """Read a .npz with `vectors`, `ids` and `tags`."""
    del width
    posted = arrays_of(body, ["vectors", "ids"], ["tags"], of_strings=("ids", "tags"))
    ids = _elements(posted["ids"], "ids", "iuU", "whole numbers or strings", check_count)
    tags = _elements(posted["tags"], "tags", "U", "strings", check_count) if "tags" in posted else None
    return Batch(posted["vectors"], ids, tags)


def read_arrow(body: Body, width: int, check_count: CheckCount) -> Batch:
    """Read a stream with columns `id` and `tag` beside the rows."""
    rows, beside = columns_of(body, width, (ID, TAG), check_count)
    ids, tags = (beside[name].to_list() if name in beside else None for name in (ID, TAG))
    if ids is None:
        raise InvalidInput(f"the Arrow stream has no column {ID!r}; each vector needs an id", f"/{ID}")
    return Batch(rows, ids, tags)


BATCHES: dict[str, Callable[[Body, int, CheckCount], Batch]] = {
    Json.media_type: read_json,
    Npz.media_type: read_npz,
    Arrow.media_type: read_arrow,
}
"""Readers of vectors to put into an index, by media type; they receive the length of a row."""


def search(body: Body, width: int, parse: Parse) -> tuple[SearchOptions, PostedRows | Reference | None]:
    """Read the options and the vectors of a search, None if the options have ids; `parse` reads the options."""
    document = members(body, [], [*_SAMPLE, *SearchOptions.model_fields], of_rows=["vectors"])
    options = _options(SearchOptions, document, body, parse)
    if options.ids is None:
        return options, vectors_or_dataset(document, width)
    if both := [member for member in _SAMPLE if member in document]:
        raise InvalidInput(f"expected ids, vectors or a dataset, got ids and {both[0]}", "/ids")
    return options, None


def _read_list(posted: dict[str, Any], member: str, check_count: CheckCount) -> list[object] | None:
    """Return a list of a body as a Python list, or None if the member is missing."""
    if member not in posted:
        return None
    if not is_list(value := posted[member]):
        raise InvalidInput(f"expected a list with one item for each vector, got {describe(value)}", f"/{member}")
    check_count(len(value))
    return [*value]


def _elements(array: Array, member: str, kinds: str, wanted: str, check_count: CheckCount) -> list[object]:
    """Return the elements of a .npz array as Python objects."""
    if array.ndim != 1 or array.dtype.kind not in kinds:
        raise InvalidInput(f"expected a 1-D array of {wanted}, got {array.dtype} of shape {array.shape}", f"/{member}")
    check_count(len(array))
    if array.dtype.kind == "U":
        points = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if points.size and points.max() > sys.maxunicode:
            raise InvalidInput(f"a string of {member} has characters that are none", f"/{member}")
    return [*array.tolist()]


def diagnostic(body: Body, wanted: type[Diagnostic], width: int, parse: Parse) -> tuple[Diagnostic, Posted]:
    """Read the body of a request for a diagnostic, whose rows have `width` entries; `parse` reads its options."""
    own = wanted.model_fields
    in_rows = [member for member in ROW_MEMBERS[wanted.takes] if member not in own]
    document = members(body, [], [*in_rows, *own])
    options = _options(wanted, document, body, parse)
    return options, _rows(document, wanted, width)


def recommendation(body: Body, parse: Parse) -> tuple[RecommendationOptions, Posted]:
    """Read the body of a request for recommendations; `parse` reads its options."""
    own = RecommendationOptions.model_fields
    document = members(body, ["kernel"], [*ROW_MEMBERS_TO_RECOMMEND_FOR, *own], of_rows=["vectors"])
    if isinstance(samplers := document.get("samplers"), list):
        document["samplers"] = [{"kind": one} if isinstance(one, str) else one for one in samplers]
    options = _options(RecommendationOptions, document, body, parse)
    if options.budget is None and options.target_error is None:
        raise InvalidInput("expected budget, target_error or both, got neither", "/budget")
    return options, {"vectors": vectors_or_dataset(document, dimension(document), own)}


def advice(body: Body, parse: Parse) -> AdviceOptions:
    """Read the body of a request for advice, which contains no rows; `parse` reads it."""
    document = members(body, ["map", "dataset"], [*AdviceOptions.model_fields], of_rows=[])
    return _options(AdviceOptions, document, body, parse)


def _options(wanted: type[Options], document: dict[str, Any], body: Body, parse: Parse) -> Options:
    """Read the options in a document; raise if they are too large, or nested too deeply for JSON."""
    try:
        text = orjson.dumps({name: document[name] for name in document if name in wanted.model_fields})
    except orjson.JSONEncodeError as error:
        raise InvalidInput(f"the options of this request cannot be read: {error}") from error
    check_options(text, body.check_options)
    options: Options = parse(wanted, text)
    return options


def writers(finding: Finding[Mapping[str, object]], warnings: Sequence[str]) -> dict[str, Callable[[], bytes]]:
    """Return functions that write a finding, by media type: JSON first, then the figures, if it has a drawing.

    The JSON has a member `warnings` beside those of the finding, if there are any warnings.
    """
    told = {"warnings": [*warnings]} if warnings else {}
    known: dict[str, Callable[[], bytes]] = {Json.media_type: lambda: orjson.dumps({**finding.answer, **told})}
    if finding.drawing is not None:
        known |= {kind: partial(_render, finding.drawing, kind) for kind in (SVG, PNG)}
    return known


def _render(drawing: Drawing, media_type: str) -> bytes:
    from app.pictures import figures

    return figures.svg(drawing) if media_type == SVG else figures.png(drawing)


def _rows(document: dict[str, Any], wanted: type[Diagnostic], width: int) -> Posted:
    match wanted.takes:
        case Takes.nothing:
            return {}
        case Takes.optional_pairs:
            return {k: rows_or_reference(document[k], width, f"/{k}") for k in ("x", "y") if k in document}
        case Takes.optional_rows if "vectors" not in document and "dataset" not in document:
            refuse_sample(document, wanted.model_fields)
            return {}
        case _:
            return {"vectors": vectors_or_dataset(document, width, wanted.model_fields)}
