"""Bodies of requests: valid ones, from the examples of the OpenAPI document, and what is made of them."""

import copy
import io
import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from app.core.ids import NumberIds
from service_tests.checks import ARROW, JSON, NPY, arrow, header, npy_with_header

_FILES = Path(__file__).parent.parent.parent / "openapi" / "examples"
EXAMPLES: dict[str, list[Any]] = {}
"""By the operations that take them."""
for _file in sorted(_FILES.glob("*.json")):
    EXAMPLES.setdefault(_file.name.partition(".")[0], []).append(json.loads(_file.read_text()))

DEEP = 400
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 16, 255, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 53, (1 << 53) + 1),
    *(1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 63) - 1, 10**30, -(10**400), 0.0, -0.0, 0.1, 1e-300, 5e-324, 1e308),
    *(-1e308, 3.4e38, 1e40, float("nan"), float("inf"), float("-inf")),
    *("", "0", "1", "a", "NaN", "null", "\0", "\r\nX-Evil: 1", "\ud800", "é", "𝕏" * 40, "a" * 5000, "../../etc/passwd"),
    *(
        "file:///etc/passwd",
        "http://127.0.0.1:1/",
        "{}",
        "{map:x}",
        "*",
        "points",
        "median",
        "__proto__",
        "%s%n",
        "$(id)",
    ),
    *([], {}, [[]], [{}], [None], [[None]], [[[]]], [[1]], [[1, 2], [3]], {"": 0}, {"kind": None}, {"kind": "x"}),
    *({"dataset": "points"}, {"dataset": "points", "rows": 2}, {"dataset": "none"}, {"indices": [0], "values": [1]}),
    *({"indices": [2, 0], "values": [1, 1]}, {"indices": [-1], "values": [1]}, {"indices": [1 << 62], "values": [0]}),
]


def _subtrees(value: Any) -> list[Any]:
    found = [value]
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        found += _subtrees(inner)
    return found


# What stands somewhere in an example: a kernel, a sampler, rows, codes.
_PARTS = [part for examples in EXAMPLES.values() for part in _subtrees(examples) if not isinstance(part, list) or part]
_MEMBERS = sorted({name for part in _PARTS if isinstance(part, dict) for name in part})


def body(random: Random, operation: str, as_rows: bool) -> tuple[bytes, str]:
    """A body for an operation, and its media type.

    Args:
        random: draws it.
        operation: its id; one without examples gets those of another.
        as_rows: whether it also takes rows in other formats than JSON.
    """
    if as_rows and random.random() < 0.4:
        return _spoiled(random, array(random)), NPY
    if as_rows and random.random() < 0.4:
        return _spoiled(random, _stream(random)), ARROW
    examples = EXAMPLES.get(operation) or random.choice(list(EXAMPLES.values()))
    document = copy.deepcopy(random.choice(examples))
    for _ in range(random.choice((0, 0, 0, 1, 1, 2, 3, 8))):
        document = _changed(random, document)
    text = json.dumps(document, ensure_ascii=random.random() < 0.9).encode("utf-8", "surrogatepass")
    return _spoiled(random, _rewritten(random, text)), JSON


def _changed(random: Random, document: Any) -> Any:
    """The document with one place of it changed."""
    holders = [part for part in _subtrees(document) if isinstance(part, dict | list) and part]
    if not holders or random.random() < 0.02:
        return copy.deepcopy(random.choice(ODD))
    holder = random.choice(holders)
    at = random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    new = copy.deepcopy(random.choice(ODD if random.random() < 0.6 else _PARTS))
    match random.randrange(6):
        case 0:
            del holder[at]
        case 1 if isinstance(holder, dict):
            holder[random.choice(_MEMBERS)] = new
        case 1 | 2 if isinstance(holder, list):
            holder.insert(at, new)
        case 3 if isinstance(holder, list):
            holder *= random.choice((2, 50))
        case _:
            holder[at] = new
    return document


def _rewritten(random: Random, text: bytes) -> bytes:
    """JSON of which the text is changed, and not what it says: members twice, brackets, encodings."""
    if random.random() > 0.1:
        return text
    return random.choice(
        (
            lambda: text.replace(b":", b": \t\r\n"),
            lambda: text.replace(b"1", b"1" * random.choice((20, 400))),
            lambda: text.replace(b"1", random.choice((b"1e999", b"-1e-999", b"01", b"+1", b"1.", b"0x1", b"1_0"))),
            lambda: b"[" * DEEP + text + b"]" * DEEP,
            lambda: b'{"a":' * DEEP + text + b"}" * DEEP,
            lambda: text[:-1] + b"," + text[1:],
            lambda: b"\xef\xbb\xbf" + text,
            lambda: text.decode("utf-8", "replace").encode("utf-16"),
            lambda: text.replace(b'"', b"'"),
            lambda: text + text,
            lambda: text.replace(b"a", b"\\u0000"),
            lambda: b"{" + b",".join(b'"%d":1' % i for i in range(3000)) + b"}",
        )
    )()


def array(random: Random) -> bytes:
    """A .npy of any dtype, order, version and shape, with a header that may say something else."""
    shape = tuple(random.choice((0, 1, 2, 3, 4, 4, 4, 4, 20)) for _ in range(random.choice((0, 1, 2, 2, 2, 2, 2, 3))))
    kind = random.choice(
        ("f2", "f4", "f4", "f8", "f8", "i1", "i2", "i4", "i8", "u1", "u8", "?", "c8", "c16", "S3", "U2")
    )
    dtype = np.dtype(random.choice("<>") + kind)
    with np.errstate(all="ignore"):
        numbers = np.resize(np.frombuffer(random.randbytes(400), np.int8), shape).astype(np.float64)
        numbers = numbers * random.choice((1, 0, 0.5, 1e3, 1e38, 1e300, np.nan))
        made = np.array(numbers.astype(dtype), order="F" if random.random() < 0.5 else "C")
    stream = io.BytesIO()
    version = random.choice(((1, 0), (1, 0), (2, 0), (3, 0)))
    np.lib.format.write_array(stream, made, version=version, allow_pickle=False)
    if random.random() < 0.7:
        return stream.getvalue()
    descr = random.choice(("'<f4'", "'|O'", "'<f4', 3", "[('a', '<f4')]", "'V8'", "'m8[s]'", "__import__('os')", "''"))
    shapes = (str(shape), "(-1, 3)", "(1 << 62, 3)", f"({1 << 62}, 3)", "3", "(3,)", "()", "(True, 3)", "(1e3, 3)")
    return npy_with_header(
        header(random.choice((repr(dtype.str), descr)), random.choice(shapes)) + " " * random.choice((0, 9, 20_000)),
        made.tobytes(),
        random.choice(((1, 0), (2, 0), (9, 9))),
    )


def _stream(random: Random) -> bytes:
    """An Arrow stream of lists or of columns, perhaps with ids."""
    dtype = np.dtype(random.choice(("i1", "u1", "i4", "i8", "u8", "f4", "f4", "f8")))
    rows = np.resize(
        np.frombuffer(random.randbytes(400), np.int8), (random.choice((0, 1, 4)), random.choice((1, 3, 4)))
    )
    columns: dict[str, Any] = {"v": rows.astype(dtype)}
    if random.random() < 0.5:
        columns = {str(i): column for i, column in enumerate(columns["v"].T)}
    if random.random() < 0.5:
        columns["ids"] = NumberIds(np.arange(len(rows)))
    return arrow(**columns)


def _spoiled(random: Random, content: bytes) -> bytes:
    """The bytes, or some of them changed, left out, or added."""
    if random.random() > 0.15 or not content:
        return content
    at = random.randrange(len(content))
    match random.randrange(4):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + random.randbytes(random.choice((1, 8, 300))) + content[at:]
        case 2:
            return content[:at] + bytes([content[at] ^ 1 << random.randrange(8)]) + content[at + 1 :]
    return content[:at] + content[at + random.choice((1, 10, 100)) :]
