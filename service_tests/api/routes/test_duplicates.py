"""Duplicates in an index over HTTP."""

import httpx

from service_tests.api.routes.indexing import made, upserted
from service_tests.checks import assert_problem

WAIT = {"Prefer": "wait=60"}


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


def test_what_cannot_be_asked_is_refused(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    empty = http.post(f"{path}/duplicates", json={"min_similarity": 0.5}, headers=WAIT)
    assert (empty.status_code, "wait" in empty.headers["Preference-Applied"]) == (200, True)
    assert (empty.json()["clusters"], empty.json()["size"]) == ([], 0)
    for body, at in (({}, "/min_similarity"), ({"min_similarity": 1.01}, "/min_similarity")):
        assert_problem(http, http.post(f"{path}/duplicates", json=body), 422, "invalid-input", at)
    assert_problem(http, http.post("/v1/indexes/none/duplicates", json={"min_similarity": 1}), 404, "index-not-found")


def test_pairs_and_clusters_with_the_vector_to_keep_are_answered(http: httpx.Client, name: str) -> None:
    path = made(http, name, keep="vectors")
    rows = [[1.0, 2, 0, 0, 1], [1, 2, 0, 0, 1], [-5, 0, 1, 1, 0]]
    upserted(http, path, [3, "a", 1], rows, [["x"], ["x", "y"], None])
    asked = {"min_similarity": 0.9, "answer": "clusters", "linkage": "representative"}
    answer = http.post(f"{path}/duplicates", json=asked, headers=WAIT).json()
    assert answer["clusters"] == [{"keep": 3, "ids": [3, "a"], "similarity_to_kept": [1, 1]}]
    assert "pairs" not in answer
    pairs = {"min_similarity": 0.9, "answer": "pairs"}
    answer = http.post(f"{path}/duplicates", json=pairs, headers=WAIT).json()
    ((pair,), size) = answer["pairs"], answer["size"]
    assert ({pair["a"], pair["b"]}, pair["exact"], size) == ({3, "a"}, 1, 3)
    answer = http.post(f"{path}/duplicates", json={**pairs, "filter": {"none": ["y"]}}, headers=WAIT).json()
    assert (answer["pairs"], answer["size"]) == ([], 2)
    for member, value in (("answer", "all"), ("linkage", "none"), ("keep_which", "last"), ("filter", {"each": []})):
        told = http.post(f"{path}/duplicates", json={**asked, member: value})
        assert assert_problem(http, told, 422, "invalid-input")["errors"][0]["pointer"].startswith(f"/{member}")


def test_an_answer_has_pages_for_a_limit(http: httpx.Client, name: str) -> None:
    path, n = made(http, name), 50
    upserted(http, path, [*range(n)], [[1.0, 2, 0, 0, 1]] * n)
    asked = {"min_similarity": 1, "answer": "pairs", "limit": 1000}
    answer = http.post(f"{path}/duplicates", json=asked, headers=WAIT)
    assert (answer.status_code, answer.json()["state"]) == (202, "succeeded")
    result = f"/v1/jobs/{answer.json()['id']}/result"
    first = http.get(result).json()
    second = http.get(result, params={"cursor": first["next"]}).json()
    assert [len(one["pairs"]) for one in (first, second)] == [1000, n * (n - 1) // 2 - 1000]
    assert second["next"] is None
    pairs = {(one["a"], one["b"]) for one in first["pairs"] + second["pairs"]}
    assert pairs == {(a, b) for a in range(n) for b in range(a + 1, n)}
    for cursor, said in (("2", "only 2"), ("-1", "pattern"), ("x", "pattern")):
        problem = assert_problem(http, http.get(result, params={"cursor": cursor}), 422, "invalid-input")
        assert problem["errors"][0]["parameter"] == "cursor"
        assert said in problem["errors"][0]["detail"]
    whole = http.post(f"{path}/duplicates", json=asked | {"limit": 2000}, headers=WAIT)
    assert (whole.status_code, whole.json()["next"], len(whole.json()["pairs"])) == (200, None, n * (n - 1) // 2)
    told = http.post(f"{path}/duplicates", json=asked | {"limit": 999})
    assert_problem(http, told, 422, "invalid-input", "/limit")
