"""Large answers, made block by block while they are sent; and answers in another dtype than that of their map."""

import asyncio
import http.client
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from starlette.responses import StreamingResponse

from app.api.admission import Admission
from app.api.array_answers import array_response
from app.api.negotiation import Wanted
from app.core.answers import RowBlocks
from app.core.arrays import Array
from app.formats import FORMATS
from service_tests.checks import JSON, NPY, array, assert_problem, npy, post, post_npy, put, put_dataset
from service_tests.running import Running, service

ROWS = np.random.default_rng(3).standard_normal((50, 3))
HALF, SINGLE = f"{NPY}; dtype=float16", f"{NPY}; dtype=float32"
FORMS = ["cos_sin", "phase", "complex", "float64", "normalized"]
ENCODINGS = ["pairs", "zero_bit", "b_bit", "packed", "one_hot", "fingerprint"]


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that holds no more than 1,500 bytes of a result, so that everything comes in blocks."""
    options = ("--max-result-bytes", "1500", "--max-operations", str(10**13))
    with service(tmp_path_factory.mktemp("narrow") / "data", *options) as running:
        yield running


@pytest.fixture(scope="module")
def in_blocks(narrow: Running) -> Iterator[httpx.Client]:
    """A client of it, with the maps of `standing`, and one that is wider than a block."""
    kernel, sampler = {"kind": "gaussian", "length_scale": 1.5}, {"kind": "sobol"}
    fourier: dict[str, Any] = {"kernel": kernel, "sampler": sampler}
    specs: dict[str, dict[str, Any]] = {form: {**fourier, "form": form} for form in ("cos_sin", "phase", "complex")}
    specs["float64"] = {**fourier, "dtype": "float64"}
    specs["normalized"] = {**fourier, "form": "phase", "normalize": True}
    specs["gmm"] = {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
    specs["wide"] = {**fourier, "s": 4096}
    with narrow.client() as client:
        for title, spec in specs.items():
            assert put(client, f"standing-{title}", {"input_dim": 3, "s": 16, "seed": 7, **spec}).status_code == 201
        yield client


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize("accept", [NPY, JSON])
@pytest.mark.parametrize("form", FORMS)
def test_features_in_blocks_are_those_of_the_whole(
    http: httpx.Client, in_blocks: httpx.Client, form: str, accept: str
) -> None:
    whole, some = (post_npy(one, f"standing-{form}/transform", ROWS, accept) for one in (http, in_blocks))
    assert whole.status_code == some.status_code == 200
    assert whole.content == some.content
    assert whole.headers.get("content-type") == some.headers.get("content-type")
    if accept == NPY:
        assert some.headers["content-length"] == str(len(whole.content))


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize("accept", [NPY, JSON])
@pytest.mark.parametrize(
    ("encoding", "on_zero"),
    [*((one, "refuse") for one in ENCODINGS), *((one, "mark") for one in ENCODINGS if one != "packed")],
)
def test_codes_in_blocks_are_those_of_the_whole(
    http: httpx.Client, in_blocks: httpx.Client, encoding: str, on_zero: str, accept: str
) -> None:
    rows = ROWS.copy()
    bits = "&bits=32" if encoding == "fingerprint" else ""
    if on_zero == "mark":
        rows[[0, 17, 18, 19, 49]] = 0
    path = f"standing-gmm/codes?encoding={encoding}{bits}&on_zero={on_zero}"
    whole, some = (post_npy(one, path, np.tile(rows, (4, 1)), accept) for one in (http, in_blocks))
    assert whole.status_code == some.status_code == 200
    assert whole.content == some.content


def test_sparse_rows_and_rows_of_datasets_come_in_blocks_too(in_blocks: httpx.Client) -> None:
    sparse = [{"indices": [i % 3], "values": [float(i)]} for i in range(1, 61)]
    dense = np.array([[float(i) * (i % 3 == j) for j in range(3)] for i in range(1, 61)])
    assert put_dataset(in_blocks, "points", dense).status_code == 201
    for path in ("standing-cos_sin/transform", "standing-gmm/codes"):
        wanted = post_npy(in_blocks, path, dense).content
        assert post(in_blocks, path, {"vectors": sparse}, NPY).content == wanted
        assert post(in_blocks, path, {"vectors": {"dataset": "points"}}, NPY).content == wanted


@pytest.mark.parametrize(
    ("path", "bad", "detail"),
    [
        ("cos_sin/transform", np.nan, "row 49, column 2 is missing"),
        ("cos_sin/transform", 3e38, "phases"),
        ("gmm/codes", 0.0, "row 49 is all zero"),
    ],
)
@pytest.mark.parametrize("accept", [NPY, JSON])
def test_what_is_wrong_with_the_last_row_is_said_before_the_first_byte(
    in_blocks: httpx.Client, path: str, bad: float, detail: str, accept: str
) -> None:
    rows = ROWS.copy()
    rows[-1] *= 0
    rows[-1, 2] = bad
    answer = post_npy(in_blocks, f"standing-{path}", rows, accept)
    assert detail in assert_problem(in_blocks, answer, 422, "invalid-input")["detail"]


def test_a_row_that_is_larger_than_a_block_is_refused(in_blocks: httpx.Client) -> None:
    document = assert_problem(in_blocks, post_npy(in_blocks, "standing-wide/transform", ROWS), 413, "too-large")
    assert document["limit"] == "max_result_bytes"
    gram = post_npy(in_blocks, "standing-cos_sin/kernel", ROWS)
    assert assert_problem(in_blocks, gram, 413, "too-large")["limit"] == "max_result_bytes"


@pytest.mark.usefixtures("standing")
@pytest.mark.parametrize(
    ("form", "accept", "dtype"),
    [
        ("cos_sin", HALF, np.float16),
        ("float64", HALF, np.float16),
        ("float64", SINGLE, np.float32),
        ("cos_sin", SINGLE, np.float32),
    ],
)
def test_another_dtype_is_answered_as_asked(
    http: httpx.Client, in_blocks: httpx.Client, form: str, accept: str, dtype: type
) -> None:
    for client in (http, in_blocks):
        own = array(post_npy(client, f"standing-{form}/transform", ROWS))
        found = array(post_npy(client, f"standing-{form}/transform", ROWS, accept))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, own.astype(dtype))


def test_all_arrays_have_other_dtypes(http: httpx.Client, standing: dict[str, str]) -> None:
    gram = array(post_npy(http, f"{standing['float64']}/kernel?exact=true", ROWS, SINGLE))
    assert (gram.dtype, gram.shape) == (np.dtype(np.float32), (2, 50, 50))
    hermitian = array(post_npy(http, f"{standing['complex64']}/kernel", ROWS, f"{NPY};dtype=complex64"))
    assert hermitian.dtype == np.complex64
    found = http.get(f"/v1/maps/{standing['cos_sin']}/frequencies", headers={"Accept": HALF})
    assert array(found).dtype == np.float16


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("gmm/codes", HALF),
        ("gmm/codes?encoding=one_hot", SINGLE),
        ("complex/transform", HALF),
        ("complex64/transform", SINGLE),
        ("cos_sin/transform", f"{NPY};dtype=float64"),
        ("cos_sin/kernel", f"{NPY};dtype=int8"),
        ("cos_sin/transform", f"{JSON};dtype=float16"),
    ],
)
def test_a_dtype_that_is_not_there_is_never_answered_otherwise(
    http: httpx.Client, standing: dict[str, str], path: str, accept: str
) -> None:
    title, _, call = path.partition("/")
    document = assert_problem(http, post_npy(http, f"{standing[title]}/{call}", ROWS, accept), 406, "not-acceptable")
    assert accept in document["detail"]


def test_numbers_that_leave_float16_are_refused(http: httpx.Client, in_blocks: httpx.Client, name: str) -> None:
    uploaded = {"kind": "uploaded", "frequencies": [[1.0, 0, 0]] * 8, "weights": [1e10] * 8}
    spec = {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": uploaded}
    for client in (http, in_blocks):
        assert put(client, name, spec).status_code == 201
        refused = post_npy(client, f"{name}/transform", ROWS, HALF)
        assert "too large for float16" in assert_problem(client, refused, 406, "not-acceptable")["detail"]
        assert post_npy(client, f"{name}/transform", ROWS).status_code == 200


def made(blocks: int, made: list[int], fails_at: int | None = None) -> StreamingResponse:
    """An answer in blocks, which are counted as they are made."""

    def make(block: slice) -> Array:
        if block.start == fails_at:
            raise MemoryError
        made.append(block.start)
        return np.full((1, 1 << 17), block.start, np.float32)

    rows = RowBlocks((blocks, 1 << 17), np.dtype(np.float32), [slice(i, i + 1) for i in range(blocks)], make)
    response = array_response({"features": rows}, Wanted("*/*", (FORMATS[NPY],)), Admission(1, 1, 1, 1, 1))
    assert isinstance(response, StreamingResponse)
    return response


def test_a_reader_that_pauses_has_two_blocks_made_and_no_more() -> None:
    count: list[int] = []

    async def read_slowly() -> int:
        pieces = aiter(made(10, count).body_iterator)
        for _ in range(2):  # the header, and a block
            await anext(pieces)
        await asyncio.sleep(0.3)
        return len(count)

    assert asyncio.run(read_slowly()) == 2


def test_a_client_that_leaves_has_no_more_blocks_made() -> None:
    count: list[int] = []

    async def leave() -> int:
        left = asyncio.Event()

        async def receive() -> dict[str, str]:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if len(message.get("body", b"")) > 1000:
                left.set()
            await asyncio.sleep(0.01)

        await made(100, count)({"type": "http"}, receive, send)
        there = len(count)
        await asyncio.sleep(0.2)
        assert len(count) <= there + 1
        return there

    assert 1 <= asyncio.run(leave()) <= 4


def test_pieces_are_small_enough_for_slow_readers() -> None:
    """A client has `client_timeout`, 30 seconds, for each: 9 kB a second are enough."""

    async def longest() -> int:
        return max([len(piece) async for piece in made(3, []).body_iterator])

    assert asyncio.run(longest()) == 1 << 18


def test_a_failure_halfway_is_no_end() -> None:
    async def read() -> None:
        async for _ in made(5, [], fails_at=3).body_iterator:
            pass

    with pytest.raises(MemoryError):
        asyncio.run(read())


def opened(running: Running) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=60)


@pytest.mark.long
def test_a_large_answer_takes_little_memory_while_it_is_read_and_while_nobody_reads_it(tmp_path: Path) -> None:
    """200 MB and more, of which a service holds two blocks."""
    columns, n = 2048, 25_000
    with service(tmp_path / "data") as running, running.client() as client:
        spec = {"input_dim": 8, "kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "sobol"}}
        assert put(client, "large", {**spec, "s": columns // 2}).status_code == 201
        rows = np.random.default_rng(0).standard_normal((n, 8)).astype(np.float32)
        assert post_npy(client, "large/transform", rows[:1]).status_code == 200
        process, body = psutil.Process(running.process.pid), npy(rows)
        idle = most = process.memory_info().rss
        with closing(opened(running)) as line:
            line.request("POST", "/v1/maps/large/transform", body, {"Content-Type": NPY})
            answer = line.getresponse()
            assert answer.length is not None
            assert answer.length > columns * n * 4
            head = answer.read(1 << 16)
            while answer.read(1 << 20):
                most = max(most, process.memory_info().rss)
        found = np.frombuffer(head, np.float32, columns * 7, 128).reshape(7, columns)
        np.testing.assert_allclose(found, array(post_npy(client, "large/transform", rows[:7])), rtol=1e-6, atol=1e-6)
        assert most - idle < 64 << 20, f"{(most - idle) >> 20} MB more than idle"

        with closing(opened(running)) as line:
            line.request("POST", "/v1/maps/large/transform", body, {"Content-Type": NPY})
            assert line.getresponse().read(1000)
            for _ in range(10):  # nobody reads
                time.sleep(0.1)
                more = process.memory_info().rss - idle
                assert more < 64 << 20, f"{more >> 20} MB more than idle"
        assert post_npy(client, "large/transform", rows[:1]).status_code == 200
