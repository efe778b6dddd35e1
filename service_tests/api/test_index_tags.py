"""Vectors of indexes are read, listed, counted and filtered by their tags as a model in Python has them."""

from random import Random
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.api.routes.indexing import GMM, found, made, upserted
from service_tests.checks import assert_problem

FILTERS: list[dict[str, list[str]]] = [
    {},
    {"all": ["a"]},
    {"any": ["b", "c"]},
    {"none": ["a"]},
    {"all": ["a", "b"], "none": ["c"]},
    {"any": ["a", "x"], "none": ["b", "y"]},
]


def fits(tags: set[str], wanted: dict[str, list[str]]) -> bool:
    has_one = "any" not in wanted or any(one in tags for one in wanted["any"])
    return has_one and tags >= {*wanted.get("all", [])} and tags.isdisjoint(wanted.get("none", []))


def listed(http: httpx.Client, path: str, **query: Any) -> dict[int | str, list[str]]:
    """All vectors of all pages."""
    every: dict[int | str, list[str]] = {}
    while True:
        page = http.get(f"{path}/vectors", params={"limit": 7, **query}).json()
        for one in page["vectors"]:
            assert one["id"] not in every
            every[one["id"]] = one["tags"]
        if page["next"] is None:
            return every
        query["cursor"] = page["next"]


@pytest.mark.parametrize("banding", [{}, {"bands": 16, "rows_per_band": 4}])
def test_tags_are_as_they_were_sent(http: httpx.Client, name: str, banding: dict[str, int]) -> None:
    """Whatever is put, replaced with and without tags, and deleted meanwhile."""
    path, random, rng = made(http, name, of=GMM, **banding), Random(3), np.random.default_rng(3)
    truth: dict[int | str, set[str]] = {}
    for step in range(8):
        ids: list[int | str] = [i if i % 3 else f"{i}" for i in random.sample(range(200), 60)]
        tags: list[Any] = [random.choice([None, "a", ["a", "b"], ["c"], ["b", "c", "a"], []]) for _ in ids]
        upserted(http, path, ids, rng.normal(size=(60, 5)), tags if step % 3 else None)
        for one, of_one in zip(ids, tags, strict=True):
            sent = {of_one} if isinstance(of_one, str) else {*(of_one or [])}
            truth[one] = sent if step % 3 else truth.get(one, set())
        for one in random.sample([*truth], 15):
            kind = "string" if isinstance(one, str) else "integer"
            assert http.delete(f"{path}/vectors/{one}", params={"kind": kind}).status_code == 204
            del truth[one]
        assert listed(http, path) == {one: sorted(of_one) for one, of_one in truth.items()}
        for wanted in FILTERS:
            fitting = {one for one, of_one in truth.items() if fits(of_one, wanted)}
            asked = http.post(f"{path}/vectors/count", json={"filter": wanted})
            assert asked.json() == {"count": len(fitting)}
            (result,) = found(http, path, rng.normal(size=(1, 5)), k=200, filter=wanted, include=["tags"], scan=True)
            assert {*result["ids"]} == fitting
            assert result["tags"] == [sorted(truth[one]) for one in result["ids"]]
    assert {*listed(http, path, tag="b")} == {one for one, of_one in truth.items() if "b" in of_one}
    assert http.post(f"{path}/vectors/count", json={}).json() == {"count": len(truth)}


@pytest.mark.parametrize("sparse", [False, True])
def test_a_vector_is_read_with_its_numbers(http: httpx.Client, name: str, sparse: bool) -> None:
    path = made(http, name, keep="vectors")
    row: Any = {"indices": [1, 4], "values": [0.5, 2.0]} if sparse else [0.1, 0.0, -3.0, 1e10, 2.0]
    sent = {"ids": [2**63, str(2**63)], "vectors": [row] * 2, "tags": [["b", "a"], None]}
    assert http.post(f"{path}/vectors", json=sent).status_code == 200
    at = f"{path}/vectors/{2**63}"
    assert http.get(at).json() == {"id": 2**63, "tags": ["a", "b"]}
    assert http.get(at, params={"include": "vector"}).json() == {"id": 2**63, "tags": ["a", "b"], "vector": row}
    assert http.get(at, params={"ids_as": "string"}).json()["id"] == str(2**63)
    assert http.get(at, params={"kind": "string"}).json() == {"id": str(2**63), "tags": []}
    assert "kind=string" in assert_problem(http, http.get(f"{path}/vectors/5"), 404, "vector-not-found")["detail"]
    codes = made(http, f"{name}-codes")
    upserted(http, codes, [1], np.ones((1, 5)))
    assert_problem(http, http.get(f"{codes}/vectors/1?include=vector"), 422, "invalid-input")


def test_bad_tags_filters_and_cursors_are_refused(http: httpx.Client, name: str) -> None:
    path = made(http, name)
    row = [[1.0] * 5]
    for tags in ([["a", 1]], [[["a"]]], [{"a": 1}], [["a", ""]], [["a"] * 17]):
        answer = http.post(f"{path}/vectors", json={"ids": [1], "vectors": row, "tags": tags})
        assert_problem(http, answer, 422, "invalid-input", "/tags/0")
    for options, pointer in (
        ({"filter": {"some": ["a"]}}, "/filter/some"),
        ({"filter": {"any": "a"}}, "/filter/any"),
        ({"filter": {"all": ["é" * 600]}}, "/filter"),
        ({"include": ["codes"]}, "/include/0"),
    ):
        answer = http.post(f"{path}/search", json={"vectors": row, **options})
        assert_problem(http, answer, 422, "invalid-input", pointer)
    for cursor in ("é", "0", "-1", "1.5"):
        assert_problem(http, http.get(f"{path}/vectors", params={"cursor": cursor}), 422, "invalid-input")


def test_a_tag_of_many_pages_is_found_to_the_end(http: httpx.Client, name: str) -> None:
    """A page looks at some vectors only: it may be empty, and yet have a next one."""
    path = made(http, name)
    rows = np.random.default_rng(1).normal(size=(400, 5))
    upserted(http, path, [*range(400)], rows, [["rare"] if i == 399 else "often" for i in range(400)])
    assert listed(http, path, tag="rare", limit=3) == {399: ["rare"]}


def test_a_listing_misses_none_while_others_are_deleted(http: httpx.Client, name: str) -> None:
    """The last vector moves to where the deleted one was."""
    path, random = made(http, name), Random(5)
    upserted(http, path, [*range(300)], np.random.default_rng(2).normal(size=(300, 5)))
    there, seen, query = {*range(300)}, set[int](), dict[str, Any]()
    while query.get("cursor", "") is not None:
        page = http.get(f"{path}/vectors", params={"limit": 20, **query}).json()
        seen |= {one["id"] for one in page["vectors"]}
        query["cursor"] = page["next"]
        for one in random.sample(sorted(there), 10):
            assert http.delete(f"{path}/vectors/{one}").status_code == 204
            there.remove(one)
    assert there
    assert there <= seen


@pytest.mark.parametrize("keep", ["codes", "vectors"])
def test_pages_of_a_search_go_on_to_the_end(http: httpx.Client, name: str, keep: str) -> None:
    """In the order of codes; where vectors are compared exactly, each 56 of these are sorted by that."""
    path = made(http, name, s=256, keep=keep)
    rows = np.random.default_rng(6).normal(size=(230, 5))
    upserted(http, path, [*range(230)], rows)
    asked: dict[str, Any] = {"ids": [5, 7], "k": 7}
    pages = []
    while asked.get("cursor", "") is not None:
        answer = http.post(f"{path}/search", json=asked).json()
        pages.append(answer["results"])
        asked["cursor"] = answer["next"]
    assert {len(page[0]["ids"]) for page in pages[:32]} == {7}
    whole = http.post(f"{path}/search", json={"ids": [5, 7], "k": 230, "exact": False}).json()["results"]
    for i in (0, 1):
        found = [one for page in pages for one in page[i]["ids"]]
        assert len(found) == 229
        for first in range(0, 229, 56):
            wanted, some = whole[i]["ids"][first : first + 56], found[first : first + 56]
            assert sorted(some) == sorted(wanted)
            if keep == "codes":
                assert some == wanted
            else:
                exact = [one for page in pages[first // 7 : first // 7 + 8] for one in page[i]["exact"]]
                assert exact == sorted(exact, reverse=True)
    assert_problem(http, http.post(f"{path}/search", json={**asked, "cursor": "x"}), 422, "invalid-input", "/cursor")


@pytest.mark.parametrize("keep", ["codes", "vectors"])
def test_tags_are_added_and_removed(http: httpx.Client, name: str, keep: str) -> None:
    path = made(http, name, keep=keep)
    upserted(http, path, [1, 2, "a", 4], np.eye(4, 5) + 1, [["x"], ["x", "y"], None, ["y"]])
    before = http.post(f"{path}/search", json={"ids": [1, 2], "k": 3}).json()

    def changed(**body: Any) -> dict[str, Any]:
        answer = http.patch(f"{path}/vectors", json=body)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    body = {"ids": [1, 2, "a", "none"], "add_tags": ["z", "x"], "remove_tags": ["y"]}
    assert changed(**body) == {"changed": 3, "missing": ["none"]}
    assert changed(**body) == {"changed": 0, "missing": ["none"]}
    assert listed(http, path) == {1: ["x", "z"], 2: ["x", "z"], "a": ["x", "z"], 4: ["y"]}
    assert changed(ids=[1, "a"], remove_tags=["x", "z", "none"]) == {"changed": 2, "missing": []}
    assert listed(http, path) == {1: [], 2: ["x", "z"], "a": [], 4: ["y"]}
    assert http.post(f"{path}/search", json={"ids": [1, 2], "k": 3}).json() == before
    many = {"ids": [1, 2], "add_tags": [str(i) for i in range(15)]}
    assert_problem(http, http.patch(f"{path}/vectors", json=many), 422, "invalid-input", "/ids/1")
    assert listed(http, path, tag="0") == {}
    for bad, at in (
        ({"ids": [1, 1]}, "/ids/1"),
        ({"ids": []}, "/ids"),
        ({"ids": [1], "add_tags": [""]}, "/add_tags/0"),
    ):
        assert_problem(http, http.patch(f"{path}/vectors", json=bad), 422, "invalid-input", at)


def test_more_tags_than_a_batch_may_have_are_refused_whole(http: httpx.Client, name: str) -> None:
    """Sixteen of a thousand control characters, six bytes each in JSON, are 98 kB for each of 800 vectors."""
    path = made(http, name)
    upserted(http, path, [*range(800)], np.random.default_rng(1).normal(size=(800, 5)))
    tags = [chr(1 + i) * 1020 for i in range(8)] + [chr(1 + i) * 1021 for i in range(8)]
    body = {"ids": [*range(800)], "add_tags": tags}
    told = assert_problem(http, http.patch(f"{path}/vectors", json=body), 413, "too-large")
    assert told["limit"] == "max_body_bytes"
    assert listed(http, path, limit=5)[0] == []
    assert http.patch(f"{path}/vectors", json={**body, "ids": [5]}).json() == {"changed": 1, "missing": []}


@pytest.mark.parametrize("keep", ["codes", "vectors"])
def test_many_are_deleted_by_ids_or_tags(http: httpx.Client, name: str, keep: str) -> None:
    path = made(http, name, keep=keep)
    rows = np.random.default_rng(9).normal(size=(500, 5))
    upserted(
        http, path, [*range(500)], rows, [["even", "early"] if i % 2 == 0 and i < 300 else "odd" for i in range(500)]
    )
    ids = [*range(100, 400, 3)]
    answer = http.post(f"{path}/vectors/delete", json={"ids": [*ids, "100", 1000]})
    assert answer.json() == {"deleted": 100, "missing": ["100", 1000]}
    answer = http.post(f"{path}/vectors/delete", json={"filter": {"all": ["even"], "none": ["late"]}})
    left = [i for i in range(500) if i not in ids and not (i % 2 == 0 and i < 300)]
    assert answer.json() == {"deleted": 400 - len(left), "missing": []}
    assert {*listed(http, path)} == {*left}
    results = http.post(f"{path}/search", json={"vectors": rows[left[:5]].tolist(), "k": 1}).json()["results"]
    assert [one["ids"] for one in results] == [[i] for i in left[:5]]
    for bad, at in (
        ({}, ""),
        ({"ids": [1], "filter": {}}, ""),
        ({"ids": [1, 1]}, "/ids/1"),
        ({"ids": [1.5]}, "/ids/0"),
        ({"filter": {"any": []}}, "/filter"),
    ):
        assert_problem(http, http.post(f"{path}/vectors/delete", json=bad), 422, "invalid-input", at or None)
    assert http.post(f"{path}/vectors/delete", json={"filter": {}}).json()["deleted"] == len(left)
    assert (http.get(path).json()["size"], http.get(path).json()["bytes"]) == (0, 0)
