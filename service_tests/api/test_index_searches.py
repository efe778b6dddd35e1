"""Searches of indexes find what comparing all vectors in NumPy finds, whatever was put, replaced and deleted."""

from collections.abc import Mapping
from random import Random
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.routes.indexing import DARTS, GMM, SIGNED, Compared, Held, compared, found, made, upserted


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
