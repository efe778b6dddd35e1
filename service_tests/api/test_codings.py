import gzip
import zlib
from collections.abc import Callable

import httpx
import numpy as np
import pytest

from app.api.bodies import zstd
from service_tests.cases import each
from service_tests.checks import JSON, NPY, array, assert_problem, npy, post_npy

PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd.compress, "deflate": zlib.compress}
BARE = PACK | {"deflate": lambda body: zlib.compress(body, wbits=-15)}
ROWS = np.array([[1, 2, 3], [0, 1, 0.5]])


def send(http: httpx.Client, path: str, content: bytes, coding: str, content_type: str = NPY) -> httpx.Response:
    headers = {"Content-Type": content_type, "Content-Encoding": coding}
    return http.post(f"/v1/maps/{path}", content=content, headers=headers)


@each("coding", ["gzip", "zstd", "deflate", "GZIP", "x-gzip"])
@each("pack", [PACK, BARE])
@each("n", [0, 2, 20_000])
def test_a_body_may_come_packed(
    http: httpx.Client, standing: dict[str, str], coding: str, pack: dict[str, Callable[[bytes], bytes]], n: int
) -> None:
    rows = np.random.default_rng(1).random((n, 3))
    packed = pack[coding.strip().lower().removeprefix("x-")](npy(rows))
    path = f"{standing['phase']}/transform"
    np.testing.assert_array_equal(array(send(http, path, packed, coding)), array(post_npy(http, path, rows)))


@pytest.mark.parametrize("coding", PACK)
def test_a_bomb_is_refused_by_the_name_of_its_limit(http: httpx.Client, standing: dict[str, str], coding: str) -> None:
    bomb = PACK[coding](bytes(64_000_000))
    problem = assert_problem(http, send(http, f"{standing['phase']}/transform", bomb, coding), 413, "too-large")
    assert (problem["limit"], problem["setting"]) == ("max_body_bytes", "BOCHNER_MAX_BODY_BYTES")
    spec = PACK[coding](b" " * (5 << 20))
    headers = {"Content-Type": JSON, "Content-Encoding": coding}
    problem = assert_problem(http, http.put("/v1/maps/m", content=spec, headers=headers), 413, "too-large")
    assert problem["limit"] == "max_spec_bytes"


def test_what_comes_packed_has_the_same_limit_even_if_it_stands_for_nothing(http: httpx.Client) -> None:
    nothing = gzip.compress(b"")[:10] + b"\0\0\0\xff\xff" * 900_000
    pieces = (nothing[i : i + (1 << 16)] for i in range(0, len(nothing), 1 << 16))
    headers = {"Content-Type": JSON, "Content-Encoding": "gzip"}
    problem = assert_problem(http, http.put("/v1/maps/m", content=pieces, headers=headers), 413, "too-large")
    assert problem["limit"] == "max_spec_bytes"


@each(
    ("coding", "content", "said"),
    [
        ("gzip", npy(ROWS), "not gzip, as Content-Encoding says"),
        ("deflate", npy(ROWS), "not deflate, as Content-Encoding says"),
        ("deflate", zlib.compress(npy(ROWS))[:-3], "ends before its deflate does"),
        ("deflate", b"", "ends before its deflate does"),
        ("zstd", npy(ROWS), "not zstd, as Content-Encoding says"),
        ("gzip", gzip.compress(npy(ROWS))[:-3], "ends before its gzip does"),
        ("zstd", zstd.compress(npy(ROWS))[:-3], "ends before its zstd does"),
        ("gzip", gzip.compress(npy(ROWS)) + b"more", "not gzip"),
        ("gzip", gzip.compress(b"") * 5000, "more than 4096 parts"),
    ],
)
def test_what_is_not_packed_as_its_header_says_is_refused(
    http: httpx.Client, standing: dict[str, str], coding: str, content: bytes, said: str
) -> None:
    answer = send(http, f"{standing['phase']}/transform", content, coding)
    assert said in assert_problem(http, answer, 422, "invalid-input")["detail"]
