"""Duplicates in an index over HTTP, against all pairs of its codes."""

from typing import Any

import httpx
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from app.core.errors import InvalidInput
from app.core.indexes.options import DuplicatesOptions
from app.core.progress import Progress
from app.settings import Settings
from app.wiring import wire
from service_tests.api.routes.indexing import GMM, SIGNED, compared, made, upserted
from service_tests.checks import assert_problem
from service_tests.running import Running

WAIT = {"Prefer": "wait=60"}


def some_rows(n: int, seed: int) -> Any:
    """Rows of which some are much alike, and some equal, of either sign."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n // 4, 5)) * 3
    return centres[rng.integers(0, n // 4, n)] * np.exp(rng.choice([0, 0.05, 0.5], (n, 1)) * rng.normal(size=(n, 5)))


def clusters_of_all_pairs(ids: list[Any], alike: Any) -> set[frozenset[Any]]:
    """Ids that are joined by pairs that are alike."""
    labels = connected_components(alike)[1]
    every = (frozenset(ids[i] for i in np.flatnonzero(labels == label)) for label in range(labels.max() + 1))
    return {one for one in every if len(one) > 1}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("at", [None, (2, 8)])
def test_clusters_are_those_of_all_pairs_whatever_the_bands(
    http: httpx.Client, name: str, signed: bool, at: tuple[int, int] | None
) -> None:
    bands = {} if at is None else {"bands": at[0], "rows_per_band": at[1]}
    path = made(http, name, s=128, of=SIGNED if signed else GMM, **bands)
    rows = some_rows(60, 3)
    ids = [str(i) if i % 3 else i for i in range(60)]
    upserted(http, path, ids, rows)
    told = compared(http, name, rows, rows, None, signed)
    for least in (0.95, 0.7):
        answer = http.post(f"{path}/duplicates", json={"min_similarity": least}, headers=WAIT)
        assert (answer.status_code, "wait" in answer.headers["Preference-Applied"]) == (200, True), answer.text
        found = answer.json()
        wanted = clusters_of_all_pairs(ids, told.estimate >= least - 1e-9)
        assert len(wanted) > 2
        assert {frozenset(one) for one in found["clusters"]} == wanted
        assert sum(map(len, found["clusters"])) == sum(map(len, wanted))
        sizes = [len(one) for one in found["clusters"]]
        assert sizes == sorted(sizes, reverse=True)
        assert all(one == sorted(one, key=lambda x: (isinstance(x, str), x)) for one in found["clusters"])
        assert (found["size"], found["min_similarity"]) == (60, least)
        assert 0 < found["compared"] <= 60 * 59
        near = told.standard_error[np.abs(told.estimate - least) < 0.05]
        assert near.min() * 0.8 < found["standard_error"] < near.max() * 1.2


def test_a_job_tells_of_what_the_index_held_when_it_ran(http: httpx.Client, name: str) -> None:
    path = made(http, name, keep="vectors")
    upserted(http, path, [3, "a", 1], [[1.0, 2, 0, 0, 1], [1, 2, 0, 0, 1], [-5, 0, 1, 1, 0]])
    answer = http.post(f"{path}/duplicates", json={"min_similarity": 1}, headers={"Prefer": "respond-async"})
    assert answer.status_code == 202
    job = answer.json()
    assert (job["kind"], job["subject"]) == ("duplicates", {"index": name})
    assert answer.headers["Location"] == f"/v1/jobs/{job['id']}"
    assert http.delete(f"{path}/vectors/a").status_code == 204
    upserted(http, path, ["b"], [[1.0, 2, 0, 0, 1]])
    later = http.post(f"{path}/duplicates", json={"min_similarity": 1}, headers=WAIT).json()
    assert later["clusters"] == [[3, "b"]]
    assert (later["size"], later["compared"]) == (3, 0)


def test_a_job_does_not_look_at_another_index_that_was_made_under_the_name(
    http: httpx.Client, running: Running, name: str
) -> None:
    made(http, name)
    payload = {"index": name, "token": "another", "options": DuplicatesOptions(min_similarity=1).model_dump_json()}
    with pytest.raises(InvalidInput, match="is not the one that was there when the job was submitted"):
        wire(Settings(redis_url=running.socket)).duplicates.answer(payload, Progress())


def test_what_cannot_be_asked_is_refused(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    empty = http.post(f"{path}/duplicates", json={"min_similarity": 0.5}, headers=WAIT)
    assert (empty.json()["clusters"], empty.json()["size"]) == ([], 0)
    for body, at in (
        ({}, "/min_similarity"),
        ({"min_similarity": 0}, "/min_similarity"),
        ({"min_similarity": 1.01}, "/min_similarity"),
        ({"min_similarity": "0.5"}, "/min_similarity"),
        ({"min_similarity": 0.5, "k": 3}, "/k"),
    ):
        problem = assert_problem(http, http.post(f"{path}/duplicates", json=body), 422, "invalid-input")
        assert problem["errors"][0]["pointer"] == at
    assert_problem(http, http.post("/v1/indexes/none/duplicates", json={"min_similarity": 1}), 404, "index-not-found")
    assert_problem(http, http.post(f"{path}/duplicates", content=b"[]"), 415, "unsupported-media-type")
