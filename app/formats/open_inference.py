"""Inference requests and answers of the Open Inference Protocol, version 2, with its binary tensors."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np
import orjson

from app.core.arrays import Array, RowBlocks, in_parts, octets, row_blocks
from app.core.errors import InvalidInput
from app.core.json_text import check_names
from app.formats.base import Body, Encoded
from app.formats.json import join_lists
from app.formats.json.body import pointer_to
from app.formats.json.lists import describe, document, is_list
from app.formats.json.rows import dense, numbers

INPUT = "vectors"
"""Name of the only input tensor of models."""
DATA = "inputs/0/data"
"""Path of the tensor's numbers in a request."""
DTYPES: dict[str, np.dtype[Any]] = {
    **{f"FP{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
    **{
        f"{sign}INT{8 * size}": np.dtype(f"<{kind}{size}")
        for size in (1, 2, 4, 8)
        for sign, kind in (("", "i"), ("U", "u"))
    },
    "BOOL": np.dtype("?"),
}
"""Dtypes of numbers, by the protocol's names."""
_TYPES = {dtype: name for name, dtype in DTYPES.items()}
VERSION = "1"
"""Version of every model: maps never change."""
_MEMBERS = ("id", "parameters", "inputs", "outputs", "model_name", "model_version")
_OF_INPUT = ("name", "shape", "datatype", "data", "parameters")
_NUMBERS_PER_PIECE = 1 << 16
_MOST_OUTPUTS = 16
# Most axes of a shape that are read: two are expected, and the error message shows the shape.
_MOST_AXES = 16
_INEXACT = 2.0**53
_LONGEST_ID = 1024
MOST_OF_NUMBER = 25
"""Most characters of one number, including its comma."""


class Output(NamedTuple):
    """Output tensor that a client requests."""

    name: str
    is_binary: bool


class Asked(NamedTuple):
    """Inference request."""

    rows: Array
    request_id: str | None
    outputs: tuple[Output, ...] | None
    """Requested outputs; None for the default outputs."""
    binary: bool
    """Whether outputs are binary by default."""

    def select_outputs(self, names: Mapping[str, bool]) -> list[Output]:
        """Return the outputs to send; `names` maps each available output to whether it is sent by default."""
        if self.outputs is None:
            return [Output(name, self.binary) for name, comes in names.items() if comes]
        for i, output in enumerate(self.outputs):
            if output.name not in names:
                detail = f"there is no output {output.name[:80]!r}; there is {' and '.join(names)}"
                raise InvalidInput(detail, f"/outputs/{i}/name")
        if len({output.name for output in self.outputs}) < len(self.outputs):
            raise InvalidInput("an output is asked for twice", "/outputs")
        return [*self.outputs]


def datatype(dtype: np.dtype[Any]) -> str:
    """Return the protocol's name of a dtype."""
    return _TYPES[dtype.newbyteorder("<")]


def read(body: Body, header_bytes: int | None) -> Asked:
    """Read a request, of which the first `header_bytes` bytes are JSON, or all if None.

    Raises:
        InvalidInput: the body is not such a request, has a member twice, or uses features that are not supported.
        TooLarge: the JSON, without the tensor's numbers, is longer than the body allows.
    """
    whole = memoryview(body.content).toreadonly()
    if header_bytes is not None and header_bytes > len(whole):
        raise InvalidInput(f"expected {header_bytes} bytes of JSON as the header says, got {len(whole)}")
    head, tail = (whole, None) if header_bytes is None else (whole[:header_bytes], whole[header_bytes:])
    check_names(head)
    found = _object(document(head, lambda n: body.check_options(n, 0)), _MEMBERS, "")
    if (version := found.get("model_version")) not in (None, "", VERSION):
        raise InvalidInput(f"expected model_version {VERSION!r}, got {str(version)[:80]!r}", "/model_version")
    parameters = _parameters(found, "binary_data_output", "")
    (tensor,) = _items(found.get("inputs"), 1, 1, "/inputs")
    request_id = found.get("id")
    if request_id is not None and not (isinstance(request_id, str) and len(request_id) <= _LONGEST_ID):
        raise InvalidInput(f"expected a string of up to {_LONGEST_ID} characters, got {describe(request_id)}", "/id")
    outputs = None
    binary = _flag(parameters, "binary_data_output", "/parameters", default=False)
    if found.get("outputs"):
        asked = enumerate(_items(found["outputs"], 1, _MOST_OUTPUTS, "/outputs"))
        outputs = tuple(_output(one, binary, f"/outputs/{i}") for i, one in asked)
    return Asked(_rows(tensor, tail), request_id, outputs, binary)


def _rows(tensor: Any, tail: memoryview | None) -> Array:
    """Read the rows of the input tensor."""
    at = "/inputs/0"
    members = _object(tensor, _OF_INPUT, at)
    if members.get("name") != INPUT:
        raise InvalidInput(f"expected {INPUT!r}, got input {str(members.get('name'))[:80]!r}", f"{at}/name")
    kind = members.get("datatype")
    if not isinstance(kind, str) or kind not in DTYPES:
        raise InvalidInput(f"expected datatype {', '.join(DTYPES)}, got {str(kind)[:80]!r}", f"{at}/datatype")
    dtype = DTYPES[kind]
    shape = _items(members.get("shape"), 0, _MOST_AXES, f"{at}/shape")
    if len(shape) != 2 or any(type(length) is not int or not 0 <= length < 1 << 40 for length in shape):
        raise InvalidInput(f"expected [rows, columns], got shape {str(shape)[:80]}", f"{at}/shape")
    size = _parameters(members, "binary_data_size", at).get("binary_data_size")
    if size is not None:
        return _binary(shape, dtype, size, tail, members.get("data") is not None)
    if tail:
        raise InvalidInput(f"{len(tail)} bytes after the JSON belong to no input", "")
    if not is_list(data := members.get("data")):
        raise InvalidInput(f"expected a list of numbers, or binary_data_size, got {describe(data)}", f"{at}/data")
    listed = _read_list(data, shape)
    with np.errstate(over="ignore", invalid="ignore"):  # too large numbers become infinite, which the gate refuses
        cast = listed.astype(dtype)
    if dtype.kind != "f" and (cast != listed).any():
        raise InvalidInput(f"expected {kind}, got another number", f"{at}/data")
    if dtype.kind != "f" and (np.abs(listed) >= _INEXACT).any():
        raise InvalidInput("numbers from 2^53 on are not read exactly from JSON: send binary data", f"{at}/data")
    return cast


def _binary(shape: Sequence[int], dtype: np.dtype[Any], size: Any, tail: memoryview | None, has_data: bool) -> Array:
    at = "/inputs/0/parameters/binary_data_size"
    if tail is None:
        raise InvalidInput("binary_data_size needs the header Inference-Header-Content-Length", at)
    if has_data:
        raise InvalidInput("expected one of binary_data_size and data, got both", at)
    if size != len(tail):
        raise InvalidInput(
            f"expected {len(tail)} for binary_data_size, the bytes after the JSON, got {str(size)[:80]}", at
        )
    if prod(shape) * dtype.itemsize != len(tail):
        wanted = prod(shape) * dtype.itemsize
        raise InvalidInput(f"expected {wanted} bytes for shape {[*shape]}, got {len(tail)}", at)
    return np.frombuffer(tail, dtype).reshape(shape)


def _read_list(data: Any, shape: Sequence[int]) -> Array:
    """Read rows from a flat list of numbers, or from a list of lists."""
    n, width = shape
    is_nested = is_list(next(iter(data), None))
    if len(data) != (n if is_nested else n * width):
        raise InvalidInput(
            f"data has {len(data)} {'rows' if is_nested else 'numbers'}; shape is {[*shape]}", f"/{DATA}"
        )
    return dense(data, width, f"/{DATA}") if is_nested else numbers(data, f"/{DATA}").reshape(n, width)


def _output(described: Any, binary: bool, pointer: str) -> Output:
    members = _object(described, ("name", "parameters"), pointer)
    if not isinstance(name := members.get("name"), str):
        raise InvalidInput(f"expected the name of an output, got {describe(name)}", f"{pointer}/name")
    parameters = _parameters(members, "binary_data", pointer)
    return Output(name, _flag(parameters, "binary_data", f"{pointer}/parameters", default=binary))


def _parameters(members: Mapping[str, Any], known: str, pointer: str) -> Mapping[str, Any]:
    """Return the member `parameters`, which may be absent or null and may contain only the `known` parameter."""
    value = members.get("parameters")
    return {} if value is None else _object(value, (known,), f"{pointer}/parameters")


def _object(value: Any, members: Sequence[str], pointer: str) -> Mapping[str, Any]:
    """Check that a value is a JSON object with no members other than these; return it."""
    if not isinstance(value, dict):
        raise InvalidInput(f"expected an object, got {describe(value)}", pointer)
    for name in value:
        if name not in members:
            known = ", ".join(members)
            raise InvalidInput(
                f"{name[:80]!r} is not served here; {known} may be there", pointer + pointer_to(name[:80])
            )
    return value


def _items(value: Any, least: int, most: int, pointer: str) -> list[Any]:
    """Check that a value is a JSON list of `least` to `most` items; return them."""
    if not is_list(value):
        raise InvalidInput(f"expected a list, got {describe(value)}", pointer)
    if not least <= len(value) <= most:
        wanted = f"{least} is" if least == most else f"{least} to {most} are"
        counted = "1 item" if len(value) == 1 else f"{len(value)} items"
        raise InvalidInput(f"{pointer.rpartition('/')[2]} has {counted}; {wanted} wanted", pointer)
    return [*value]


def _flag(parameters: Mapping[str, Any], name: str, pointer: str, default: bool) -> bool:
    value = default if parameters.get(name) is None else parameters[name]
    if not isinstance(value, bool):
        raise InvalidInput(f"expected true or false, got {describe(value)}", f"{pointer}/{name}")
    return value


Tensor = Array | RowBlocks


def encode(request_id: str | None, model: str, outputs: Sequence[tuple[Output, Tensor]]) -> tuple[Encoded, int | None]:
    """Write an answer with these outputs; also return how many of its bytes are JSON, None for all.

    If some outputs are binary and others are not, the JSON is held in memory as a whole.
    """
    head = {"model_name": model} | ({} if request_id is None else {"id": request_id})
    described = (_describe_output(*one, b"," if i else b"") for i, one in enumerate(outputs))
    before = orjson.dumps(head)[:-1] + b',"outputs":['
    text: Iterator[bytes] = chain([before], chain.from_iterable(described), [b"]}"])
    binary = [tensor for output, tensor in outputs if output.is_binary]
    if not binary:
        return Encoded(text), None
    json = b"".join(text)
    blocks = (octets(block) for tensor in binary for block in in_parts(tensor))
    pieces: Iterator[bytes | memoryview] = chain([json], blocks)
    return Encoded(pieces, len(json) + sum(tensor.nbytes for tensor in binary), len(json)), len(json)


def _describe_output(output: Output, tensor: Tensor, before: bytes) -> Iterator[bytes]:
    """Yield the JSON description of an output, including its numbers if they are not binary."""
    said: dict[str, Any] = {"name": output.name, "datatype": datatype(tensor.dtype), "shape": [*tensor.shape]}
    if output.is_binary:
        yield before + orjson.dumps(said | {"parameters": {"binary_data_size": tensor.nbytes}})
        return
    yield before + orjson.dumps(said)[:-1] + b',"data":'
    flats = (block.reshape(-1) for block in in_parts(tensor))
    yield from join_lists(flat[part] for flat in flats for part in row_blocks(flat.size, _NUMBERS_PER_PIECE))
    yield b"}"
