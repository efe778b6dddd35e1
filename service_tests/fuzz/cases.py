"""Cases: a request for some operation, with a body and a key or without, broken or not, and what is known of it."""

import copy
import io
import json
import re
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
from arro3.io import read_ipc_stream, write_parquet
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from app.core.arrays import NumberIds
from app.store.keys import Role
from service_tests.checks import ARROW, JSON, NPY, PARQUET, arrow, header, npy_with_header
from service_tests.formats.test_npz import npz
from service_tests.fuzz import heads
from service_tests.fuzz.heads import DEEP

EXAMPLES: dict[str, list[Any]] = {}
"""By the operations that take them."""
for _file in sorted((Path(__file__).parents[2] / "openapi" / "examples").glob("*.json")):
    EXAMPLES.setdefault(_file.name.partition(".")[0], []).append(json.loads(_file.read_text()))

_ODD = [
    *(10**30, -(10**400), 1 << 63, 5e-324, 3.4e38, "NaN", "\ud800", "../../etc/passwd", "points", "median", "%s%n", []),
    *({"dataset": "points"}, {"dataset": "none"}, {"kind": "x"}, {"indices": [2, 0], "values": [1, 1]}, [[1, 2], [3]]),
    *({"indices": [-1], "values": [1]}, {"indices": [1 << 62], "values": [0]}, "a" * 5000, "{map:x}", {"": 0}),
]
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_VALUES = st.recursive(
    _SCALARS | st.sampled_from(_ODD).map(copy.deepcopy),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=9), one, max_size=3),
    max_leaves=5,
)
_REWRITTEN = [
    *(lambda text: b"[" * DEEP + text + b"]" * DEEP, lambda text: text + text, lambda text: b"\xef\xbb\xbf" + text),
    *(lambda text: text.replace(b"1", b"1" * 400), lambda text: text.replace(b"1", b"1e999"), lambda text: text[:-1]),
    *(lambda text: text[:-1] + b"," + text[1:], lambda text: text.replace(b"a", b"\\u0000")),
]
"""What changes the text of JSON: members twice, brackets, encodings."""


def _holders(value: Any) -> list[Any]:
    """Every list and object in a value that has something in it."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value] * bool(inner) + [part for one in inner for part in _holders(one)]


@st.composite
def _json(draw: st.DrawFn, operation: str) -> bytes:
    document = copy.deepcopy(draw(st.sampled_from(EXAMPLES[operation])))
    for _ in range(draw(st.sampled_from((0, 0, 0, 0, 0, 1, 2, 5)))):
        holder = draw(st.sampled_from([*_holders(document), [0]]))
        at = draw(st.sampled_from(list(holder) if isinstance(holder, dict) else range(len(holder))))
        match draw(st.sampled_from(("leave out", "repeat", "replace", "replace"))):
            case "leave out":
                del holder[at]
            case "repeat" if isinstance(holder, list):
                holder *= 50
            case _:
                holder[at] = draw(_VALUES)
    text = json.dumps(document, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    return draw(st.sampled_from(_REWRITTEN))(text) if draw(st.integers(0, 9)) == 9 else text


_DTYPES = st.sampled_from(["<f4", "<f4", "<f8", ">f8", "<f2", "|i1", "<i4", "<i8", "|u1", "<u8", "|b1", "<c8", "|S3"])
_SHAPE = st.tuples(st.integers(0, 5), st.sampled_from((4, 4, 3, 8)))
_ROWS = _DTYPES.flatmap(lambda dtype: arrays(dtype, _SHAPE | array_shapes(max_dims=3)))
_DESCRIPTIONS = st.sampled_from(["'<f4'", "'|O'", "'<f4', 3", "[('a', '<f4')]", "'V8'", "__import__('os')", "''"])
_SHAPES = st.sampled_from(["(-1, 3)", f"({1 << 62}, 3)", "3", "(3,)", "()", "(True, 3)", "(1e3, 3)", "(2, 4)"])


def _npy(rows: Any, in_columns: bool) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array(rows, order="F" if in_columns else "C"), allow_pickle=False)
    return stream.getvalue()


def _stream(rows: Any, with_ids: bool) -> bytes:
    return arrow(v=rows, **({"ids": NumberIds(np.arange(len(rows)))} if with_ids else {}))


def _parquet(stream: bytes) -> bytes:
    file = io.BytesIO()
    write_parquet(read_ipc_stream(io.BytesIO(stream)), file)
    return file.getvalue()


_STREAMS = st.builds(_stream, arrays("<f4", _SHAPE) | arrays("|u1", _SHAPE) | arrays("<i8", _SHAPE), st.booleans())
FORMATS: dict[str, st.SearchStrategy[bytes]] = {
    NPY: st.builds(_npy, _ROWS, st.booleans())
    | st.builds(lambda descr, shape: npy_with_header(header(descr, shape), bytes(40)), _DESCRIPTIONS, _SHAPES),
    "application/x-npz": st.builds(lambda packed, **rows: npz(packed, **rows), st.booleans(), vectors=_ROWS, x=_ROWS),
    ARROW: _STREAMS,
    PARQUET: _STREAMS.map(_parquet),
}
"""A strategy for each format but JSON, which depends on the operation."""


@st.composite
def bodies(draw: st.DrawFn, operation: str, media_types: list[str]) -> tuple[bytes, str]:
    """A body for an operation, of a media type that it takes, and that type; one in seven is spoiled."""
    media_type = draw(st.sampled_from([*media_types, JSON]))
    content = draw(FORMATS[media_type] if media_type in FORMATS else _json(operation))
    at = draw(st.integers(0, len(content)))
    match draw(st.integers(0, 20)):
        case 18:
            return content[:at], media_type
        case 19:
            return content[:at] + draw(st.binary(min_size=1, max_size=300)) + content[at:], media_type
        case 20:
            return content[:at] + content[at + 9 :], media_type
    return content, media_type


DOCUMENT: dict[str, Any] = json.loads((Path(__file__).parents[2] / "openapi" / "openapi.json").read_text())
STANDING = ("cos-sin", "phase", "complex", "signed", "landmarks", "gmm")
"""Maps that stay, and at last one that hashes, with an index of its name."""
_METHODS = ("HEAD", "OPTIONS", "TRACE", "PATCH", "GET")


class Operation(NamedTuple):
    """A call of the OpenAPI document."""

    method: str
    path: str
    described: dict[str, Any]

    @property
    def media_types(self) -> list[str]:
        """Those of the bodies that it takes."""
        return [*self.described["requestBody"]["content"]]

    @property
    def role(self) -> Role | None:
        """The role that it needs; None for none."""
        security = self.described["security"]
        return Role(security[0]["key"][0]) if security else None


OPERATIONS = {
    (method.upper(), path): Operation(method.upper(), path, described)
    for path, methods in DOCUMENT["paths"].items()
    for method, described in methods.items()
}
# Those that take bodies come more often.
_OFTEN = [one for one in OPERATIONS.values() for _ in range(8 if "requestBody" in one.described else 1)]


class Credential(NamedTuple):
    """What is sent in the place of a key."""

    fields: tuple[bytes, ...]
    role: Role | None
    """What it lets its sender do; None for nothing."""
    own: bool = True
    """Whether it looks like a key of the service, so that its sender is held to it also where none is needed."""


class Case(NamedTuple):
    """What is sent, and what is known of it."""

    sent: bytes
    method: str
    operation: Operation | None
    credential: Credential
    is_whole: bool
    """Whether it is one request and framed as it should be, so that it has one answer."""


@st.composite
def cases(draw: st.DrawFn, credentials: list[Credential]) -> Case:
    """A strategy of cases: Hypothesis draws the operation and the body, and the head is drawn from a seed."""
    operation, random = draw(st.sampled_from(_OFTEN)), Random(draw(st.integers(0, 1 << 32)))
    method = operation.method if random.random() < 0.97 else random.choice(_METHODS)
    target = re.sub(r"\{(\w+)\}", lambda found: _segment(random, operation, found[1]), operation.path)
    target += heads.query(random, operation.described.get("parameters", []))
    content, media_type, framing = b"", None, list[bytes]()
    if "requestBody" in operation.described:
        content, media_type = draw(bodies(operation.described["operationId"], operation.media_types))
        framing, content = heads.framed(random, content)
    credential = random.choice(credentials)
    lines = heads.fields(random, media_type) + framing + list(credential.fields)
    sent = b"\r\n".join([f"{method} {target} HTTP/1.1".encode("latin-1"), *lines, b"", content])
    is_whole = random.random() > 0.15
    asked = OPERATIONS.get(("GET" if method == "HEAD" else method, operation.path))
    return Case(sent if is_whole else heads.broken(random, sent, method), method, asked, credential, is_whole)


def _segment(random: Random, operation: Operation, name: str) -> str:
    """A part of an address: a name, an id, or one of the words that it may be."""
    if random.random() < 0.05:
        return quote(random.choice(heads.TEXTS).encode(), safe="") or "%2F"
    parameters = operation.described["parameters"]
    words: list[str] = next((one["schema"].get("enum", []) for one in parameters if one["name"] == name), [])
    if words or name in ("slug", "id"):
        return random.choice(words or ("too-large", "nothing", "<b>", "0" * 24, "f" * 16))
    passing = random.choice([f"w-{i}" for i in range(20)])
    if operation.method in ("PUT", "DELETE") or random.random() < 0.2:
        return passing
    hashes = "indexes" in operation.path or operation.described["operationId"] in ("codes", "similarity")
    return STANDING[-1] if hashes and random.random() < 0.7 else random.choice(STANDING)
