"""Bodies that are JSON objects: parsed within a bound on memory."""

import gc
from collections.abc import Sequence
from typing import Any

import orjson

from app.core.errors import InvalidInput
from app.formats.json_rows import called, pointer_to

# Shorter bodies are parsed whatever they hold.
_TRUSTED_BYTES = 1 << 20
# Brackets that are not those of rows: of the body's object and its members.
_OUTER_BRACKETS = 8


def bytes_per_row(width: int) -> int:
    """The fewest bytes of JSON for each list or object in rows of vectors, commas included."""
    # The shortest rows are [0,0], or {"indices":[],"values":[]}, which is an object and two lists.
    return min(2 * width + 2, 9)


def members(
    body: bytes, wanted: Sequence[str], optional: Sequence[str] = (), *, bytes_per_list: float
) -> dict[str, Any]:
    """The members of a JSON object, which must have those that are wanted and no others but the optional.

    Args:
        body: the whole request body.
        wanted: names of members that must be there.
        optional: names of members that may be there too.
        bytes_per_list: the fewest bytes that a sensible body has for each list or object in it. A body with more lists
            and objects is refused before it is parsed, because each costs a hundred bytes of memory then.
    """
    if len(body) > _TRUSTED_BYTES:
        brackets, most = body.count(b"[") + body.count(b"{"), int(len(body) / bytes_per_list) + _OUTER_BRACKETS
        if brackets > most:
            raise InvalidInput(
                f"the body has {brackets} opening brackets; rows such as this request takes have at most {most} in "
                f"{len(body)} bytes"
            )
    gc.disable()  # JSON has no cycles, and looking for them takes longer than parsing
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"the body is not JSON: {error}") from error
    finally:
        gc.enable()
    if not isinstance(document, dict):
        raise InvalidInput(f"the body is {called(document)}; an object with {_listed(wanted or optional)} is wanted")
    for name in wanted:
        if name not in document:
            raise InvalidInput(f"the member {name} is missing", f"/{name}")
    for name in document:
        if name not in {*wanted, *optional}:
            allowed = _listed(list(dict.fromkeys([*wanted, *optional])))
            raise InvalidInput(f"{name[:80]!r} is no member of this request; it takes {allowed}", pointer_to(name[:80]))
    return document


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
