"""Searches of indexes find what comparing all vectors in NumPy finds, whatever was put, replaced and deleted."""

from collections.abc import Mapping
from random import Random
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.routes.indexing import DARTS, GMM, SIGNED, Compared, Held, compared, found, made, upserted
from service_tests.checks import assert_problem


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
        (200, None, "codes", SIGNED),
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
                # So few vectors with a tag are all compared.
                share = tagged if "tag" in options else codes.share[i]
                of_query = Compared(share, codes.estimate[i], codes.standard_error[i])
                check(result, [*held], of_query, exact[i] if of_exact else None, options)


def check(
    result: dict[str, Any], ids: list[int | str], codes: Compared, exact: Any, options: Mapping[str, Any]
) -> None:
    """A result is of the vectors that share a band and have the tag, the best of them, and tells of each what is so."""
    # Words of 16 bits stand for bands: others share one by chance, and rows that are alike do so together.
    assert 0 <= result["candidates"] - codes.share.sum() <= 2
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


@pytest.mark.parametrize("keep", ["codes", "vectors"])
@pytest.mark.parametrize("banding", [None, (32, 2)])
def test_a_vector_of_the_index_finds_what_its_row_finds_but_itself(
    http: httpx.Client, name: str, keep: str, banding: tuple[int, int] | None
) -> None:
    asked_bands = {} if banding is None else {"bands": banding[0], "rows_per_band": banding[1]}
    path = made(http, name, keep=keep, of=GMM, **asked_bands)
    rng = np.random.default_rng(2)
    rows, ids = np.array([a_row(rng) for _ in range(60)]), [i if i % 2 else f"{i}" for i in range(60)]
    upserted(http, path, ids, rows)
    asked = http.post(f"{path}/search", json={"ids": ids[:20], "k": 5}).json()["results"]
    for i, (of_id, of_row) in enumerate(zip(asked, found(http, path, rows[:20], k=6), strict=True)):
        kept = [j for j, one in enumerate(of_row["ids"]) if one != ids[i]][:5]
        for member in ("ids", "similarity", "standard_error", *(["exact"] if keep == "vectors" else [])):
            assert of_id[member] == [of_row[member][j] for j in kept]
    missing = http.post(f"{path}/search", json={"ids": [1, 77], "k": 5})
    assert "kind=string" in assert_problem(http, missing, 404, "vector-not-found")["detail"]
    both = http.post(f"{path}/search", json={"ids": [1], "vectors": rows[:1].tolist()})
    assert_problem(http, both, 422, "invalid-input", "/ids")


def test_all_that_have_a_tag_are_found_although_bands_hold_few(http: httpx.Client, name: str) -> None:
    """Bands of many codes find equal vectors only; a search says that it has scanned."""
    path = made(http, name, bands=2, rows_per_band=32)
    rng = np.random.default_rng(4)
    rows = np.array([a_row(rng) for _ in range(80)])
    upserted(http, path, [*range(80)], rows, ["a" if i < 12 else None for i in range(80)])
    for options, searched in (({"tag": "a"}, "scan"), ({"scan": True}, "scan"), ({}, "bands")):
        for result in found(http, path, rows[:12], **options):
            assert result["searched"] == searched
            assert (len(result["ids"]) == 10) == (searched == "scan")


def test_large_whole_numbers_are_strings_where_that_is_wanted(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    upserted(http, path, [2**63 + 1, "a"], np.eye(5)[:2])
    asked = {"vectors": np.eye(5)[:1].tolist()}
    for query, first in (("", 2**63 + 1), ("?ids_as=string", str(2**63 + 1))):
        (result,) = http.post(f"{path}/search{query}", json=asked).json()["results"]
        assert result["ids"] == [first, "a"]


def test_a_search_warns_where_similarities_are_biased(http: httpx.Client, name: str) -> None:
    kernel = {"kind": "matern", "nu": 1.5, "length_scale": 1.0}
    path = made(http, name, 64, of=SIGNED | {"kernel": kernel, "sampler": {"kind": "moment_matching"}})
    body = {"ids": [1], "vectors": [[1, 2, 3, 4, 5]]}
    calls = [
        ("vectors", body, False),
        ("vectors?unless_similar=0.9", body, True),
        ("search", {"vectors": body["vectors"]}, True),
        ("search", {"ids": [1]}, True),
    ]
    for call, asked, doubted in calls:
        answer = http.post(f"{path}/{call}", json=asked)
        told = answer.json().get("warnings", [])
        assert ["moment_matching biases this kernel" in one for one in told] == [True] * doubted
        assert ("bochner-warning" in answer.headers) is doubted
