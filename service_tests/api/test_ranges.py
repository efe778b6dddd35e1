from itertools import pairwise
from typing import Any

import httpx
import pytest

from service_tests.cases import each
from service_tests.checks import JSON, NPY, assert_problem, put

NPZ = "application/x-npz"
PATH = "/v1/maps/standing-phase/frequencies"


def part(http: httpx.Client, asked: str, path: str = PATH, accept: str = NPY, **headers: str) -> httpx.Response:
    return http.get(path, headers={"Range": asked, "Accept": accept, **headers})


@pytest.fixture
def whole(http: httpx.Client, standing: dict[str, str]) -> bytes:
    assert standing["phase"]
    answer = http.get(PATH, headers={"Accept": NPY})
    assert answer.headers["accept-ranges"] == "bytes"
    return answer.content


@each(
    ("asked", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=0-", 0, 319),
        ("bytes=100-199", 100, 199),
        ("bytes=200-99999999999999999999", 200, 319),
        ("bytes=-20", 300, 319),
        ("bytes=-99999", 0, 319),
    ],
)
def test_a_part_is_sent(http: httpx.Client, whole: bytes, asked: str, first: int, last: int) -> None:
    assert len(whole) == 320
    answer = part(http, asked)
    assert answer.status_code == 206
    assert answer.content == whole[first : last + 1]
    assert answer.headers["content-range"] == f"bytes {first}-{last}/320"
    assert answer.headers["content-length"] == str(last - first + 1)
    assert answer.headers["etag"] == http.get(PATH, headers={"Accept": NPY}).headers["etag"]
    assert answer.headers["content-type"] == NPY


@pytest.mark.parametrize("asked", ["bytes=320-", "bytes=320-400", "bytes=-0", "bytes=99999999999999999999-"])
@pytest.mark.usefixtures("whole")
def test_a_part_behind_the_end_is_refused(http: httpx.Client, asked: str) -> None:
    answer = part(http, asked)
    assert_problem(http, answer, 416, "range-not-satisfiable")
    assert answer.headers["content-range"] == "bytes */320"


@each(
    "asked",
    [
        "bytes=0-9,20-29",
        "bytes=9-5",
        "lines=0-9",
        "bytes=a-b",
        "bytes=--5",
    ],
)
def test_what_names_no_one_part_is_answered_whole(http: httpx.Client, whole: bytes, asked: str) -> None:
    answer = part(http, asked)
    assert (answer.status_code, answer.content) == (200, whole)
    assert "content-range" not in answer.headers


def test_who_goes_on_with_another_version_gets_all_of_it(http: httpx.Client, whole: bytes) -> None:
    tag = http.get(PATH, headers={"Accept": NPY}).headers["etag"]
    assert part(http, "bytes=5-", **{"If-Range": tag}).status_code == 206
    for other in ('"other"', f"W/{tag}", "Tue, 15 Nov 1994 12:45:26 GMT"):
        answer = part(http, "bytes=5-", **{"If-Range": other})
        assert (answer.status_code, answer.content) == (200, whole)
    assert part(http, "bytes=5-", **{"If-None-Match": tag}).status_code == 304


def test_parts_of_a_large_array_and_of_files_make_the_whole(http: httpx.Client, name: str) -> None:
    kernel = {"kind": "gaussian", "length_scale": 1.5}
    spec: dict[str, Any] = {"input_dim": 300, "s": 1 << 13, "kernel": kernel, "sampler": {"kind": "monte_carlo"}}
    assert put(http, name, spec).status_code == 201  # 9.8 MB
    arrays, file = f"/v1/maps/{name}/frequencies", f"/v1/maps/{name}/export?format="
    for path, accept in ((arrays, NPY), (arrays, NPZ), (f"{file}onnx", "*/*"), (f"{file}npz", "*/*")):
        every = http.get(path, headers={"Accept": accept}).content
        cuts = [0, 1, 128, 300_000, 5_000_000, len(every)]
        pieces = [part(http, f"bytes={first}-{last - 1}", path, accept) for first, last in pairwise(cuts)]
        assert {one.status_code for one in pieces} == {206}
        assert b"".join(one.content for one in pieces) == every


def test_a_head_a_refusal_and_answers_without_parts_know_no_range(http: httpx.Client, standing: dict[str, str]) -> None:
    head = http.head(PATH, headers={"Range": "bytes=0-9", "Accept": NPY})
    assert (head.status_code, head.headers["content-length"]) == (200, "320")
    assert_problem(http, part(http, "bytes=0-9", "/v1/maps/none/frequencies"), 404, "map-not-found")
    record = part(http, "bytes=0-9", f"/v1/maps/{standing['phase']}", JSON)
    assert (record.status_code, record.json()["name"]) == (200, standing["phase"])
    posted = http.post(f"/v1/maps/{standing['phase']}/transform", json={"vectors": []}, headers={"Range": "bytes=0-1"})
    assert (posted.status_code, posted.json()) == (200, {"features": []})


def test_a_part_is_of_what_is_not_packed(http: httpx.Client) -> None:
    answer = http.get("/v1/catalog", headers={"Range": "bytes=0-999", "Accept-Encoding": "gzip"})
    assert (answer.status_code, "content-encoding" in answer.headers) == (206, False)
    whole = http.get("/v1/catalog")
    assert answer.content == whole.content[:1000]
    # What it has may be the beginning of a compressed answer, which has the same ETag.
    headers = {"Range": "bytes=1000-", "If-Range": whole.headers["etag"]}
    assert http.get("/v1/catalog", headers={**headers, "Accept-Encoding": "gzip"}).status_code == 200
    assert http.get("/v1/catalog", headers={**headers, "Accept-Encoding": "identity"}).status_code == 206
