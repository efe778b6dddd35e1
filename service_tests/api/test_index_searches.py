"""Searches of indexes find what comparing all vectors in NumPy finds, whatever was put, replaced and deleted."""

from random import Random
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.routes.indexing import Held, counts, found, made, upserted

CHANCE = 1 / 256


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
    ("s", "banding", "keep"),
    [(64, None, "codes"), (64, (16, 4), "vectors"), (25, (5, 5), "codes"), (7, (7, 1), "codes"), (64, None, "vectors")],
)
def test_a_search_finds_what_comparing_all_finds(
    http: httpx.Client, name: str, s: int, banding: tuple[int, int] | None, keep: str
) -> None:
    asked = {} if banding is None else {"bands": banding[0], "rows_per_band": banding[1]}
    path, held, rng = made(http, name, s, keep=keep, **asked), dict[int | str, Held](), np.random.default_rng(s)
    for _ in range(3):
        change(http, path, held, rng)
        queries = np.array([a_row(rng) for _ in range(5)])
        everything = [*held]
        agree, share = counts(http, name, queries, np.array([one.row for one in held.values()]), banding)
        exact = http.post(
            f"/v1/maps/{name}/kernel?exact=true",
            json={"x": queries.tolist(), "y": [one.row.tolist() for one in held.values()]},
        ).json()["exact"]
        for options in ({"k": 4}, {"k": 200, "min_similarity": 0.3}, {"k": 3, "tag": "a"}, {"k": 5, "exact": False}):
            results = found(http, path, queries, **options)
            tagged = np.array([options.get("tag") in (None, one.tag) for one in held.values()])
            for i, result in enumerate(results):
                check(result, everything, agree[i], share[i] & tagged, np.array(exact[i]), s, keep, options)


def check(
    result: dict[str, Any],
    ids: list[int | str],
    agree: Any,
    there: Any,
    exact: Any,
    s: int,
    keep: str,
    options: dict[str, Any],
) -> None:
    """A result is of the vectors that are `there`, the best of them, and tells of each what is true."""
    # Words of 16 bits stand for bands: others share one by chance.
    assert 0 <= result["candidates"] - there.sum() <= 1
    places = [ids.index(one) for one in result["ids"]]
    assert [type(one) for one in result["ids"]] == [type(ids[place]) for place in places]
    assert len({*places}) == len(places)
    estimates = (agree / s - CHANCE) / (1 - CHANCE)
    np.testing.assert_allclose(result["similarity"], estimates[places], atol=1e-12)
    rate = agree[places] / s
    np.testing.assert_allclose(
        result["standard_error"], np.sqrt(rate * (1 - rate) / s) / (1 - CHANCE), rtol=0.2, atol=0.03
    )
    of_exact = keep == "vectors" and options.get("exact", True)
    values = exact if of_exact else estimates
    if of_exact:
        np.testing.assert_allclose(result["exact"], exact[places], rtol=1e-12)
    else:
        assert "exact" not in result
    least = options.get("min_similarity", -np.inf)
    told = values[places]
    assert (np.diff(told) <= 1e-12).all()
    best = np.sort(values[there & (values >= least - 1e-12)])[::-1][: options["k"]]
    np.testing.assert_allclose(told, best, rtol=1e-12, atol=1e-12)
