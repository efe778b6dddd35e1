"""A service on what an earlier version has stored, and how its answers are compared with those of that version."""

import base64
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from service_tests.checks import NPY, array
from service_tests.running import service
from service_tests.stored.specs import ARRAYS

# Relative to the largest number of the answer.
ROUNDING = {"f4": 2e-6, "c8": 2e-6, "f8": 1e-12, "c16": 1e-12}
TIMES = {"seconds_per_1000_rows"}


class Stored(NamedTuple):
    """A service on what an earlier version has stored, and what that version answered."""

    http: httpx.Client
    expected: dict[str, Any]
    socket: str


@contextmanager
def opened(archive: Path, directory: Path, workers: int) -> Iterator[Stored]:
    """The present service on an archive."""
    expected = json.loads(archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text())
    data = directory / "data"
    data.mkdir()
    with tarfile.open(archive) as packed:
        packed.extractall(data, filter="data")
    with service(data, "--job-workers", str(workers)) as running, running.client() as http:
        yield Stored(http, expected, running.socket)


def numbers(told: dict[str, Any]) -> NDArray[Any]:
    """An array that was written down."""
    return np.frombuffer(base64.b64decode(told["base64"]), told["dtype"]).reshape(told["shape"])


def assert_close(found: NDArray[Any], told: dict[str, Any], rounding: float | None = None) -> None:
    assert_near(found, numbers(told), rounding)


def assert_near(found: NDArray[Any], expected: NDArray[Any], rounding: float | None = None) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if rounding is None:
        rounding = ROUNDING[expected.dtype.str[1:]]
    assert np.abs(found - expected).max() <= rounding * np.abs(expected).max()


def assert_same(found: Any, expected: Any) -> None:
    """An answer of JSON, its numbers to rounding. Members may have been added since, and times are never the same."""
    if isinstance(expected, dict):
        for name in expected.keys() - TIMES:
            assert_same(found[name], expected[name])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)
    else:
        assert found == expected


def members(record: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Of a record, the members that the earlier version knew."""
    return {name: record.get(name, "missing") for name in expected}


def arrays(http: httpx.Client, name: str) -> dict[str, NDArray[Any]]:
    """The frozen arrays of a map, by name; not every map has each."""
    answers = {one: http.get(f"/v1/maps/{name}/{one}", headers={"Accept": NPY}) for one in ARRAYS}
    assert {answer.status_code for answer in answers.values()} <= {200, 404}
    return {one: array(answer) for one, answer in answers.items() if answer.status_code == 200}
