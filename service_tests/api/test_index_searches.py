"""Searches of indexes find what comparing all vectors in NumPy finds, whatever was put, replaced and deleted."""

from collections.abc import Mapping
from random import Random
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.routes.indexing import DARTS, GMM, SIGNED, Compared, Held, compared, found, made, npz, upserted


def a_row(rng: np.random.Generator) -> Any:
    """Near one of four places, so that similarities of all sizes come up."""
    return np.sign(rng.normal(size=5)) * (1 + rng.integers(4)) * rng.uniform(0.8, 1.25, 5)


def change(http: httpx.Client, path: str, held: dict[int | str, Held], rng: np.random.Generator) -> None:
    """Put some vectors, old and new ones, and delete some."""
    numbers = rng.choice(150, 60, replace=False).tolist()
    ids = [number if number % 2 else str(number // 4) for number in numbers]
    ids = [*dict.fromkeys(ids)]
    rows, tags = [a_row(rng) for _ in ids], [Random(i).choice(["a", "b", None]) for i in range(len(ids))]
    upserted(http, path, ids, rows, tags)
    held.update({one: Held(row, tag) for one, row, tag in zip(ids, rows, tags, strict=True)})
    for one in [*held][:: int(rng.integers(5, 9))]:
        kind = "string" if isinstance(one, str) else "integer"
        assert http.delete(f"{path}/vectors/{one}?kind={kind}").status_code == 204
        del held[one]


@pytest.mark.parametrize(
    ("s", "banding", "keep", "of"),
    [
        (64, None, "codes", GMM),
        (64, (16, 4), "vectors", GMM),
        (25, (5, 5), "codes", GMM),
        (7, (7, 1), "codes", GMM),
        (64, None, "vectors", GMM),
        (200, None, "codes", SIGNED),
        (93, (9, 10), "vectors", SIGNED),
        (64, (20, 3), "vectors", DARTS),
    ],
)
def test_a_search_finds_what_comparing_all_finds(
    http: httpx.Client, name: str, s: int, banding: tuple[int, int] | None, keep: str, of: dict[str, Any]
) -> None:
    asked = {} if banding is None else {"bands": banding[0], "rows_per_band": banding[1]}
    path = made(http, name, s, of=of, keep=keep, **asked)
    held, rng = dict[int | str, Held](), np.random.default_rng(s)
    for _ in range(3):
        change(http, path, held, rng)
        queries, others = np.array([a_row(rng) for _ in range(5)]), np.array([one.row for one in held.values()])
        codes = compared(http, name, queries, others, banding, of is SIGNED)
        pairs = {"x": queries.tolist(), "y": others.tolist()}
        exact = np.array(http.post(f"/v1/maps/{name}/kernel?exact=true", json=pairs).json()["exact"])
        for options in ({"k": 4}, {"k": 200, "min_similarity": 0.3}, {"k": 3, "tag": "a"}, {"k": 5, "exact": False}):
            of_exact = keep == "vectors" and bool(options.get("exact", True))
            tagged = np.array([options.get("tag") in (None, one.tag) for one in held.values()])
            for i, result in enumerate(found(http, path, queries, **options)):
                of_query = Compared(codes.share[i] & tagged, codes.estimate[i], codes.standard_error[i])
                check(result, [*held], of_query, exact[i] if of_exact else None, options)


def check(
    result: dict[str, Any], ids: list[int | str], codes: Compared, exact: Any, options: Mapping[str, Any]
) -> None:
    """A result is of the vectors that share a band and have the tag, the best of them, and tells of each what is so."""
    # Words of 16 bits stand for bands: others share one by chance.
    assert 0 <= result["candidates"] - codes.share.sum() <= 1
    places = [ids.index(one) for one in result["ids"]]
    assert [type(one) for one in result["ids"]] == [type(ids[place]) for place in places]
    assert len({*places}) == len(places)
    np.testing.assert_allclose(result["similarity"], codes.estimate[places], atol=1e-12)
    np.testing.assert_allclose(result["standard_error"], codes.standard_error[places], atol=1e-12)
    values = codes.estimate if exact is None else exact
    if exact is None:
        assert "exact" not in result
    else:
        np.testing.assert_allclose(result["exact"], exact[places], rtol=1e-9)
    least, told = options.get("min_similarity", -np.inf), values[places]
    assert (np.diff(told) <= 1e-9).all()
    best = np.sort(values[codes.share & (values >= least - 1e-9)])[::-1][: options["k"]]
    np.testing.assert_allclose(told, best, rtol=1e-9, atol=1e-12)


def test_five_for_each_that_is_wanted_are_compared_however_many_readings_it_takes(
    http: httpx.Client, name: str
) -> None:
    rng, d = np.random.default_rng(7), 8192
    rows = rng.random((100, d))  # 6.5 MB
    path = made(http, name, s=4, of={**DARTS, "input_dim": d}, keep="vectors")
    for some in np.split(np.arange(100), 5):
        content, kind = npz(ids=some, vectors=rows[some]), {"Content-Type": "application/x-npz"}
        assert http.post(f"{path}/vectors", content=content, headers=kind).json() == {"upserted": 20}
    query = rng.random(d)
    exact = np.minimum(rows, query).sum(axis=1) / np.maximum(rows, query).sum(axis=1)
    (result,) = found(http, path, [query], k=20)
    assert result["ids"] == np.argsort(-exact)[:20].tolist()
    np.testing.assert_allclose(result["exact"], np.sort(exact)[::-1][:20], rtol=1e-9)


@pytest.mark.parametrize("of", [GMM, SIGNED])
def test_vectors_estimated_below_0_are_not_found_where_a_similarity_of_0_is_wanted(
    http: httpx.Client, name: str, of: dict[str, Any]
) -> None:
    rng = np.random.default_rng(4)
    rows = 30 * rng.normal(size=(60, 5))
    for keep in ("codes", "vectors"):
        path = made(http, f"{name}-{keep}", s=16, of=of, keep=keep)
        upserted(http, path, [*range(60)], rows)
    path = f"/v1/indexes/{name}-codes"
    some = found(http, path, rows[:9], k=60, min_similarity=0)
    for every, one in zip(found(http, path, rows[:9], k=60), some, strict=True):
        assert len(every["ids"]) == 60
        assert every["similarity"][-1] < 0
        assert one["similarity"] == [value for value in every["similarity"] if value >= 0]
    # No kernel is below 0: exactly, all have it.
    exactly = found(http, f"/v1/indexes/{name}-vectors", rows[:9], k=60, min_similarity=0)
    assert [len(one["ids"]) for one in exactly] == [60] * 9


def test_vectors_too_coarse_for_the_dtype_are_warned_of_where_they_are_put_and_sought(
    http: httpx.Client, name: str
) -> None:
    path = made(http, name, of={**SIGNED, "dtype": "float32"}, keep="vectors")
    for row, is_coarse in (([1.5] * 5, False), ([1e9] * 5, True)):
        for answer in (
            http.post(f"{path}/vectors", json={"ids": [1], "vectors": [row]}),
            http.post(f"{path}/search", json={"vectors": [row]}),
        ):
            assert answer.status_code == 200
            assert ("warnings" in answer.json()) == ("Bochner-Warning" in answer.headers) == is_coarse
            if is_coarse:
                assert answer.json()["warnings"] == [answer.headers["Bochner-Warning"]]
                assert "float32 is too coarse for 1 of 1 rows of vectors" in answer.headers["Bochner-Warning"]
