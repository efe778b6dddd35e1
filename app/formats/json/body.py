"""JSON bodies: objects whose options are measured before they are parsed, and whose rows may be dataset references."""

import re
from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any

from app.core.arrays import MAX_DIM, PostedRows
from app.core.datasets import Reference
from app.core.errors import InvalidInput, TooLarge
from app.core.json_text import check_lists, check_names
from app.core.model import NAME_PATTERN
from app.formats.base import Body
from app.formats.json.lists import PART_BYTES, Part, describe, document, loads
from app.formats.json.rows import MEMBERS, encoded_rows, rows

_REFERENCE = ("dataset", "rows", "seed")


def members(
    body: Body, wanted: Sequence[str], optional: Sequence[str] = (), of_rows: Collection[str] = ("vectors", "x", "y")
) -> dict[str, Any]:
    """Return the members of a JSON object: all of `wanted` must be present, and only `optional` ones beside them.

    Lists in members of rows may be `LongList`s, and strings there may be `LongText`s.

    Raises:
        InvalidInput: the body is not JSON, has other members, or has a member twice.
        TooLarge: everything outside lists of rows is longer than the body allows. It is not parsed then.
    """
    check_names(body.content)
    found = loads(body.content) if _is_short(body) else document(body.content, lambda n: body.check_options(n, 0))
    if not isinstance(found, dict):
        raise InvalidInput(f"the body: expected an object with {', '.join(wanted or optional)}, got {describe(found)}")
    for name in wanted:
        if name not in found:
            raise InvalidInput(f"the member {name} is missing", f"/{name}")
    for name in found:
        if name not in {*wanted, *optional}:
            allowed = ", ".join(dict.fromkeys([*wanted, *optional]))
            raise InvalidInput(f"{name[:80]!r} is no member of this request; it takes {allowed}", pointer_to(name[:80]))
    if not _is_short(body):
        _parse_options(body, found, of_rows)
    return found


def _is_short(body: Body) -> bool:
    """Whether a body is short enough to be parsed as a whole, whatever it contains."""
    if len(body.content) > PART_BYTES:
        return False
    try:
        body.check_options(len(body.content), 0)
    except TooLarge:
        return False
    return True


def _parse_options(body: Body, found: dict[str, Any], of_rows: Collection[str]) -> None:
    """Parse the lists of all members except rows; raise TooLarge if there is too much outside lists of rows."""
    in_rows = sum(one.nbytes for _, _, one in _long_parts(found, of_rows))
    options = _long_parts(found, [name for name in found if name not in of_rows])
    check_lists(len(body.content) - in_rows, [one.span for _, _, one in options], body.check_options)
    for holder, name, one in options:
        holder[name] = one.whole()


def _long_parts(found: dict[str, Any], names: Collection[str]) -> list[tuple[dict[str, Any], str, Part]]:
    """Return the long lists and strings in some members and in nested objects, each with its object and name."""
    lists, held = [], [(found, name) for name in names if name in found]
    while held:
        holder, name = held.pop()
        value = holder[name]
        if isinstance(value, Part):
            lists.append((holder, name, value))
        elif isinstance(value, dict):
            held += [(value, inner) for inner in value]
    return lists


def vectors_or_dataset(
    document: Mapping[str, Any], width: int | None = None, options: Container[str] = ()
) -> PostedRows | Reference:
    """Return the rows of a body with `vectors`, or its `dataset` with optional `rows` and `seed`; `width` as in `rows`.

    If there is no dataset, `rows` and `seed` are allowed if `options` contains them, as they mean something else then.
    """
    if ("vectors" in document) == ("dataset" in document):
        came = "both" if "vectors" in document else "neither"
        raise InvalidInput(f"expected vectors or dataset, got {came}", "/vectors")
    if "dataset" in document:
        return _reference({name: document[name] for name in _REFERENCE if name in document}, "")
    refuse_sample(document, options)
    return rows_or_reference(document["vectors"], width, "/vectors")


def refuse_sample(document: Mapping[str, Any], options: Container[str]) -> None:
    """Raise InvalidInput for `rows` or `seed` of a sample in a body without a dataset, unless they are options."""
    for member in ("rows", "seed"):
        if member in document and member not in options:
            raise InvalidInput(f"{member} is of a sample of a dataset, got no dataset", f"/{member}")


def rows_or_reference(value: Any, width: int | None, pointer: str) -> PostedRows | Reference:
    """Read a list of rows, rows in base64, or an object that names a dataset."""
    is_reference = isinstance(value, dict) and not set(MEMBERS) & set(value)
    return _reference(value, pointer) if is_reference else rows_in(value, width, pointer)


def rows_in(value: Any, width: int | None, pointer: str) -> PostedRows:
    """Read a list of rows, or rows in base64; `width` as in `rows`."""
    in_base64 = isinstance(value, dict) and set(MEMBERS) & set(value)
    return encoded_rows(value, pointer) if in_base64 else rows(value, width, pointer)


def dimension(document: Mapping[str, Any]) -> int | None:
    """Return the member `input_dim` of a body, or None if it is missing."""
    return _whole(document["input_dim"], 1, MAX_DIM, "/input_dim") if "input_dim" in document else None


def pointer_to(name: str) -> str:
    """Return the JSON pointer (RFC 6901) to a member of an object."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _reference(value: dict[str, Any], pointer: str) -> Reference:
    if "dataset" not in value:
        wanted = "a list of rows, or an object with the member dataset or base64"
        raise InvalidInput(f"expected {wanted}, got an object with neither", pointer)
    for name in value:
        if name not in _REFERENCE:
            takes = ", ".join(_REFERENCE)
            detail = f"{name[:80]!r} is no member of a reference to a dataset; it takes {takes}"
            raise InvalidInput(detail, pointer + pointer_to(name[:80]))
    dataset = value["dataset"]
    if not isinstance(dataset, str) or not re.fullmatch(NAME_PATTERN, dataset):
        came = repr(dataset[:80]) if isinstance(dataset, str) else describe(dataset)
        raise InvalidInput(f"expected the name of a dataset, got {came}", f"{pointer}/dataset")
    count = _whole(value["rows"], 1, (1 << 63) - 1, f"{pointer}/rows") if "rows" in value else None
    seed = _whole(value.get("seed", 0), 0, (1 << 64) - 1, f"{pointer}/seed")
    return Reference(dataset, count, seed, pointer)


def _whole(value: Any, least: int, most: int, pointer: str) -> int:
    if type(value) is not int or not least <= value <= most:
        raise InvalidInput(f"expected a whole number from {least} to {most}, got {describe(value)}", pointer)
    return value
