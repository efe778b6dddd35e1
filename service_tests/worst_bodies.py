"""Bodies that cost most for their length."""

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from arro3.io import read_ipc_stream, write_parquet

from service_tests.checks import arrow, npy

MiB = 1 << 20


def member(name: str, item: bytes, nbytes: int = 16 * MiB) -> bytes:
    """A member of a JSON object that is a list of one item again and again."""
    return b'"%b":[' % name.encode() + (item + b",") * (nbytes // (len(item) + 1)) + item + b"]"


def vectors(item: bytes, others: bytes = b"") -> Callable[[], bytes]:
    """A JSON body of rows that are all alike."""
    return lambda: b"{" + member("vectors", item) + others + b"}"


def pairs(item: bytes) -> Callable[[], bytes]:
    """A JSON body of x and y, whose rows are all alike."""
    return lambda: b"{" + member("x", item, 8 * MiB) + b"," + member("y", item, 8 * MiB) + b"}"


def said(**members: Any) -> Callable[[], bytes]:
    """A JSON body."""
    return lambda: json.dumps(members, separators=(",", ":")).encode()


def array(shape: tuple[int, int], dtype: Any = np.bool_) -> Callable[[], bytes]:
    """A .npy of zeros."""
    return lambda: npy(np.zeros(shape, dtype))


def zeros(nbytes: int) -> Callable[[], bytes]:
    """A Parquet file of one column of so many bytes of zeros, some kilobytes long."""

    def made() -> bytes:
        sink = io.BytesIO()
        write_parquet(read_ipc_stream(io.BytesIO(arrow(v=np.zeros((nbytes // 8, 1))))), sink)
        return sink.getvalue()

    return made


def tensor(shape: tuple[int, int], item: bytes) -> Callable[[], bytes]:
    """A request of inference whose numbers are all alike."""
    head = b'{"inputs":[{"name":"vectors","datatype":"FP32","shape":[%d,%d],' % shape
    return lambda: head + member("data", item, shape[0] * (len(item) + 1) - 1) + b"}]}"


def binary(n: int, *outputs: bool) -> Callable[[], bytes]:
    """Binary rows of one number after 1,024 bytes of JSON; the outputs `real` and `imag` are binary or not."""
    size = {"binary_data_size": 4 * n}
    rows = {"name": "vectors", "datatype": "FP32", "shape": [n, 1], "parameters": size}
    named = zip(("real", "imag"), outputs, strict=True)
    wanted = [{"name": name, "parameters": {"binary_data": is_binary}} for name, is_binary in named]
    head = json.dumps({"inputs": [rows], "outputs": wanted}).encode()
    return lambda: head.ljust(1024) + bytes(4 * n)
