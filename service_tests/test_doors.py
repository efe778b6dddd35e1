"""Columns of every type through every door: the same answer, or a refusal that names the type. The table is docs'."""

import datetime
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from app.formats.open_inference import datatype
from bochner_client import Client
from bochner_client.transformers import FeatureMap, HashMap
from service_tests.running import Running

pytestmark = pytest.mark.gate
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "types.md"
SPEC = {"input_dim": 1, "s": 8, "dtype": "float64", "kernel": {"kind": "gaussian", "length_scale": 1.0}}
SPEC |= {"sampler": {"kind": "halton"}, "input": {"missing": 0}}
DAY = datetime.date(2020, 1, 2)
# A type of Arrow, two values of it, and the numbers that they are, or None.
# A fourth are the numbers that text of them is.
KINDS: Mapping[str, tuple[Any, ...]] = {
    **{f"{sign}int{bits}": (f"{sign}int{bits}", [1, 100], [1, 100]) for bits in (8, 16, 32, 64) for sign in ("", "u")},
    **{f"float{bits}": (f"float{bits}", [0.5, -2], [0.5, -2]) for bits in (16, 32, 64)},
    "bool": ("bool_", [True, False], [1, 0], None),
    "whole numbers, one missing": ("int64", [3, None], [3, 0]),
    "numbers, one missing": ("float64", [0.5, None], [0.5, 0]),
    "booleans, one missing": ("bool_", [True, None], [1, 0], None),
    "nothing but missing": ("null", [None, None], [0, 0]),
    "lists of numbers": ("list", [[0.5], [-2.0]], [0.5, -2]),
    "whole numbers beyond 2^53": ("int64", [2**53 + 1, 0], None, [2**53, 0]),
    "decimal": ("decimal", [Decimal("1.5"), Decimal(2)], None, [1.5, 2]),
    "strings of digits": ("string", ["1", "2"], None),
    "category": ("dictionary", ["a", "b"], None),
    "date": ("date32", [DAY, DAY], None),
    "timestamp": ("timestamp", [datetime.datetime(2020, 1, 2), None], None),
    "duration": ("duration", [datetime.timedelta(1), None], None),
    "binary": ("binary", [b"a", b"b"], None),
    "struct": ("struct", [{"a": 1.0}, {"a": 2.0}], None),
    "complex": ("complex", [1j, 2], None),
}
TEXT_DOORS = ("JSON", "`transform` CSV")
"""Where numbers are text, which has no types."""
NAMED = {
    "whole numbers beyond 2^53": "9007199254740993",
    "bool": "true",
    "booleans, one missing": "true",
    "decimal": "(?i)decimal",
    "strings of digits": "str|utf8",
    "category": "dictionary|category|a string|'a'|'O'",
    "date": "date|a string|2020",
    "timestamp": "(?i)timestamp|datetime|a string|2020",
    "duration": "(?i)duration|timedelta|a string|1 day",
    "binary": "binary|bytes|a string",
    "struct": "struct|dict|an object",
    "complex": "(?i)complex|a string|1j",
}
"""What a refusal says of a type."""


def column(kind: str) -> Any:
    pa = pytest.importorskip("pyarrow")
    name, values = KINDS[kind][:2]
    types = {
        "list": lambda: pa.list_(pa.float64()),
        "decimal": lambda: pa.decimal128(5, 2),
        "dictionary": lambda: pa.dictionary(pa.int8(), pa.string()),
        "timestamp": lambda: pa.timestamp("us"),
        "duration": lambda: pa.duration("us"),
        "struct": lambda: pa.struct({"a": pa.float64()}),
    }
    if name == "complex":
        raise LookupError("Arrow has no complex numbers")
    return pa.array(values, types[name]() if name in types else getattr(pa, name)())


def array(kind: str) -> NDArray[Any]:
    """The column as NumPy has it."""
    name, values = KINDS[kind][:2]
    found = np.array(values) if name == "complex" else column(kind).to_numpy(zero_copy_only=False)
    if found.dtype == object:
        raise LookupError("an array has no such numbers")
    return found


def table(kind: str) -> Any:
    return pytest.importorskip("pyarrow").table({"x": column(kind)})


def post(http: httpx.Client, media_type: str, body: bytes, path: str = "/v1/maps/doors/transform") -> Any:
    answer = http.post(path, content=body, headers={"Content-Type": media_type, "Accept": "application/json"})
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 422:
        raise ValueError(answer.json()["detail"] + str(answer.json().get("errors")))
    return answer.json()


def in_json(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else str(value)


def of_json(http: httpx.Client, kind: str) -> Any:
    values = [value if isinstance(value, list) else [value] for value in KINDS[kind][1]]
    return post(
        http,
        "application/json",
        json.dumps(
            {"vectors": values}, default=lambda one: float(one) if isinstance(one, Decimal) else str(one)
        ).encode(),
    )["features"]


def of_npy(http: httpx.Client, kind: str) -> Any:
    body = io.BytesIO()
    np.save(body, array(kind).reshape(-1, 1))
    return post(http, "application/x-npy", body.getvalue())["features"]


def of_arrow(http: httpx.Client, kind: str) -> Any:
    ipc, body = pytest.importorskip("pyarrow.ipc"), io.BytesIO()
    with ipc.new_stream(body, table(kind).schema) as writer:
        writer.write_table(table(kind))
    return post(http, "application/vnd.apache.arrow.stream", body.getvalue())["features"]


def of_inference(http: httpx.Client, kind: str) -> Any:
    found = array(kind).reshape(-1, 1)
    if found.dtype.kind not in "biufc":
        raise LookupError("the protocol has no such type")
    tensor: dict[str, Any] = {"name": "vectors", "shape": found.shape, "datatype": datatype(found.dtype)}
    tensor["parameters"] = {"binary_data_size": found.nbytes}
    head = json.dumps({"inputs": [tensor]}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head)), "Content-Type": "application/octet-stream"}
    answer = http.post("/v2/models/doors/infer", content=head + found.tobytes(), headers=headers)
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 422:
        raise ValueError(answer.json()["error"])
    (features,) = answer.json()["outputs"]
    return np.reshape(features["data"], features["shape"])


def of_bulk(name: str, content: bytes, http: httpx.Client) -> Any:
    """What `bochner transform` makes of a file."""
    bulk, parquet = pytest.importorskip("bochner.bulk"), pytest.importorskip("pyarrow.parquet")
    frozen = http.get("/v1/maps/doors/export?format=npz").content
    with TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        out = f"{folder}/out.parquet"
        report = bulk.run(f"{folder}/{name}", out, bulk.Computing(frozen), bulk.Columns(1), {})
        if report.complaints:
            raise ValueError(report.complaints[0])
        return parquet.read_table(out).column("features").to_pylist()


def of_parquet(http: httpx.Client, kind: str) -> Any:
    """A dataset, whose rows go through the map."""
    body = io.BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(table(kind), body)
    answer = http.put(
        "/v1/datasets/doors", content=body.getvalue(), headers={"Content-Type": "application/vnd.apache.parquet"}
    )
    if answer.status_code == 422:
        raise ValueError(str(answer.json()))
    assert answer.status_code == 201, answer.text
    try:
        return post(http, "application/json", b'{"dataset": "doors"}')["features"]
    finally:
        assert http.delete("/v1/datasets/doors").status_code == 204


def of_csv(http: httpx.Client, kind: str) -> Any:
    if KINDS[kind][0] in ("list", "struct", "binary", "duration", "string"):
        raise LookupError("a cell has no such value")
    words = [str(value).lower() if isinstance(value, bool) else value for value in KINDS[kind][1]]
    return of_bulk("x.csv", "\n".join(["x", *("NA" if one is None else str(one) for one in words), ""]).encode(), http)


def of_files(http: httpx.Client, kind: str) -> Any:
    body = io.BytesIO()
    pytest.importorskip("pyarrow.parquet").write_table(table(kind), body)
    return of_bulk("x.parquet", body.getvalue(), http)


def frames(kind: str) -> list[Any]:
    """The column in a frame of each library; what one of them has no type for is left out."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    if KINDS[kind][0] == "complex":
        return [pd.DataFrame({"x": array(kind)}), array(kind).reshape(-1, 1)]
    typed = pd.DataFrame({"x": pd.array(column(kind), pd.ArrowDtype(column(kind).type))})
    plain = table(kind).to_pandas()
    return [table(kind), plain, plain.convert_dtypes(), typed, pl.from_arrow(table(kind))]


def alike(found: list[Any]) -> Any:
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])
    return found[0]


def through_frames(transform: Callable[[Any], Any], kind: str) -> Any:
    """What comes of all frames of a kind, which is the same; ValueError if all of them are refused."""
    found, refused = [], []
    for frame in frames(kind):
        try:
            found.append(transform(frame))
        except (ValueError, TypeError) as error:
            refused.append(error)
    assert not (found and refused), refused
    if refused:
        raise ValueError(" and ".join(map(str, refused)))
    return alike(found)


@pytest.fixture(scope="module")
def client(running: Running, http: httpx.Client) -> Iterator[Client]:
    assert http.put("/v1/maps/doors", json=SPEC).status_code == 201
    with Client(running.url) as made:
        yield made
    assert http.delete("/v1/maps/doors").status_code == 204


@pytest.fixture(scope="module")
def transformers(running: Running) -> tuple[FeatureMap, HashMap]:
    options: dict[str, Any] = {"length_scale": 1.0, "input": {"missing": 0}, "url": running.url}
    features, codes = FeatureMap(s=8, dtype="float64", **options), HashMap(kernel="gaussian", s=64, **options)
    return features.fit([[0.0], [1.0]]), codes.fit([[0.0], [1.0]])


@pytest.fixture(scope="module")
def doors(
    http: httpx.Client, client: Client, transformers: tuple[FeatureMap, HashMap]
) -> Mapping[str, Callable[[str], Any]]:
    features, codes = transformers
    return {
        "JSON": partial(of_json, http),
        "`.npy`": partial(of_npy, http),
        "Arrow": partial(of_arrow, http),
        "Parquet": partial(of_parquet, http),
        "Open Inference": partial(of_inference, http),
        "`Client`": partial(through_frames, partial(client.transform, "doors")),
        "`FeatureMap`": partial(through_frames, features.transform),
        "`HashMap`": partial(through_frames, codes.transform),
        "`transform` CSV": partial(of_csv, http),
        "`transform` Parquet": partial(of_files, http),
    }


@pytest.fixture(scope="module")
def expected(client: Client, transformers: tuple[FeatureMap, HashMap]) -> Callable[[str, list[float]], Any]:
    """What comes of numbers at a door."""

    def answer(door: str, numbers: list[float]) -> Any:
        rows = np.array(numbers, np.float64).reshape(-1, 1)
        return transformers[1].transform(rows) if door == "`HashMap`" else client.transform("doors", rows)

    return answer


def outcome(doors: Mapping[str, Callable[[str], Any]], door: str, kind: str) -> Any:
    """What comes of a type at a door: features or codes, or the words of a refusal."""
    try:
        return doors[door](kind)
    except LookupError:
        return None
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:X has feature names", "ignore:float64 is too coarse")
def test_a_type_is_the_same_at_every_door(
    doors: Mapping[str, Callable[[str], Any]], expected: Callable[[str, list[float]], Any], kind: str
) -> None:
    cells = [kind]
    for door in doors:
        found, numbers = outcome(doors, door, kind), KINDS[kind][-1 if door in TEXT_DOORS else 2]
        if found is None:
            cells.append("–")
        elif isinstance(found, str):
            assert numbers is None, (door, found)
            assert re.search(NAMED[kind], found), (door, found)
            cells.append("refused")
        else:
            assert numbers is not None, (door, found)
            np.testing.assert_array_equal(found, expected(door, numbers))
            cells.append("yes")
    line = f"| {' | '.join(cells)} |"
    assert line in PAGE.read_text().splitlines(), f"expected in {PAGE.name}: {line}"
