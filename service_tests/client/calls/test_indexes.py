import httpx
import numpy as np
import pytest
from scipy import sparse

from bochner_client import (
    AliasNotFound,
    IndexExists,
    IndexInUse,
    IndexNotFound,
    InvalidInput,
    MapInUse,
    NotFound,
    NotModified,
    PreconditionFailed,
)
from bochner_client.calls import indexes
from service_tests.client.conftest import Asked

ROWS = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
SPEC = {"input_dim": 3, "s": 32, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}


def test_vectors_are_put_found_and_deleted(ask: Asked, name: str) -> None:
    ask.put_map(name, SPEC)
    made = ask.put_index(name, name, bands=8, rows_per_band=2, keep="vectors", ttl=600)
    assert (made.map, made.bands, made.rows_per_band, made.keep, made.size, made.ttl) == (name, 8, 2, "vectors", 0, 600)
    with pytest.raises(IndexExists):
        ask.put_index(name, name)
    assert ask.upsert_vectors(name, [1, "1"], ROWS[:2], ["a", None]) == 2
    assert ask.upsert_vectors(name, np.array([2]), sparse.csr_array(ROWS[2:3])) == 1
    assert ask.get_index(name).size == 3
    assert [one.name for one in ask.iter_indexes(name)] == [name]
    results = ask.search_index(name, ROWS[:3], 1)
    assert [(one.ids, one.exact) for one in results] == [([1], [1.0]), (["1"], [1.0]), ([2], [1.0])]
    (tagged,) = ask.search_index(name, ROWS[1:2], tag="a", min_similarity=0.1, exact=False)
    assert (tagged.ids, tagged.exact, tagged.searched) == ([1], None, "scan")
    ask.upsert_vectors(name, [2], ROWS[2:3], [["a", "b"]])
    (filtered,) = ask.search_index(name, ROWS[:1], filter={"all": ["a"], "none": ["c"]}, include=["tags"])
    assert sorted(zip(filtered.ids, filtered.tags, strict=True)) == [(1, ["a"]), (2, ["a", "b"])]
    assert {(one.id, *one.tags) for one in ask.iter_vectors(name)} == {(1, "a"), ("1",), (2, "a", "b")}
    assert [one.id for one in ask.list_vectors(name, tag="b").vectors] == [2]
    assert ask.count_vectors(name, {"any": ["b"]}) == 1
    assert ask.change_tags(name, ["none"], add=["z"]).missing == ask.delete_vectors(name, ["none"]).missing == ["none"]
    read = ask.get_vector(name, 2, vector=True)
    assert (read.id, read.tags, read.vector) == (2, ["a", "b"], ROWS[2].tolist())
    (like,) = ask.search_index(name, ids=["1"], scan=True)
    assert sorted(like.ids) == [1, 2]
    assert ask.upsert_vectors(name, [7, 8], [[0, 0, 0], [0, 0, 1]], on_zero="skip").skipped == (7,)
    ask.delete_vector(name, 8)
    added = ask.upsert_vectors(name, ["twin"], ROWS[1:2], unless_similar=0.9, dry_run=True)
    assert (added, added.inserted, [(one.id, one.like) for one in added.refused]) == (0, (), [("twin", "1")])
    ask.upsert_vectors(name, ["twin"], ROWS[1:2])
    alike = ask.find_duplicates(name, 1.0)
    assert (alike.clusters, alike.size, alike.min_similarity) == ([["1", "twin"]], 4, 1.0)
    assert ask.start_duplicates(name, 1.0).wait()["clusters"] == alike.clusters
    kept = ask.find_duplicates(name, 0.9, answer="clusters", linkage="representative")
    assert (kept.clusters, kept.similarity_to_kept, kept.pairs) == ([["1", "twin"]], [[1, 1]], ())
    (pair,) = ask.find_duplicates(name, 0.9, answer="pairs").pairs
    assert {pair.a, pair.b} == {"1", "twin"}
    with pytest.raises(MapInUse) as used:
        ask.delete_map(name)
    assert used.value.indexes == [name]
    ask.delete_vector(name, "1")
    with pytest.raises(NotFound):
        ask.delete_vector(name, "1")
    ask.delete_index(name)
    with pytest.raises(IndexNotFound):
        ask.get_index(name)


def test_pages_of_duplicates_are_joined(ask: Asked, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "_DUPLICATES_ON_A_PAGE", 1000)
    n = 50
    ask.put_map(name, SPEC)
    ask.put_index(name, name)
    ask.upsert_vectors(name, [*range(n)], np.tile(ROWS[1], (n, 1)))
    pairs = ask.find_duplicates(name, 1.0, answer="pairs").pairs
    assert [(one.a, one.b) for one in pairs] == [(a, b) for a in range(n) for b in range(a + 1, n)]
    job = ask.start_duplicates(name, 1.0, answer="pairs", limit=1000)
    first = job.wait()
    second = ask.get_job_result(job.id, cursor=first["next"])
    assert (len(first["pairs"]), len(second["pairs"]), second["next"]) == (1000, len(pairs) - 1000, None)


def test_a_job_that_finds_bands_is_followed(ask: Asked, name: str) -> None:
    ask.put_map(name, SPEC)
    ask.put_dataset(name, np.random.default_rng(3).normal(size=(200, 3)))
    asked = {"target": {"recall": 0.5, "k": 1, "dataset": name}, "keep": "vectors"}
    answer = httpx.put(f"{ask.url}/v1/indexes/{name}", json={"map": name, **asked}, headers={"Prefer": "respond-async"})
    made = ask.put_index(name, name, **asked, timeout=60)
    assert (made.status, made.job, made.error, made) == ("ready", None, None, ask.get_job_result(answer.json()["job"]))


@pytest.mark.parametrize("sparse_rows", [False, True])
def test_many_vectors_are_sent_in_batches(
    ask: Asked, name: str, sparse_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As large as the service takes; the answers are put together. Large vectors make smaller batches."""
    ask.put_map(name, SPEC)
    ask.put_index(name, name)
    rows = np.ones((25_000, 3))
    rows[[5, 24_000]] = 0
    ids = [*range(25_000)]
    given = sparse.csr_array(rows) if sparse_rows else rows
    put = ask.upsert_vectors(name, ids, given, ["t"] * 25_000, on_zero="skip")
    assert (put, put.skipped, ask.get_index(name).size) == (24_998, (5, 24_000), 24_998)
    assert ask.count_vectors(name, {"all": ["t"]}) == 24_998
    monkeypatch.setattr(indexes, "_MANY_BYTES", 100)
    again = ask.upsert_vectors(name, ids[:4], given[:4], unless_similar=0.9)
    assert (again, again.inserted, [one.id for one in again.refused]) == (0, (), [0, 1, 2, 3])
    with pytest.raises(InvalidInput, match="expected 2 ids, one for each vector, got 1"):
        ask.upsert_vectors(name, [1], given[:2])
    ask.delete_index(name)


def test_an_index_is_copied_measured_and_given_an_alias(ask: Asked, name: str) -> None:
    ask.put_map(name, SPEC)
    ask.put_index(name, name, bands=8, rows_per_band=2, keep="vectors")
    rows = np.random.default_rng(1).gamma(2, size=(30, 3))
    ask.upsert_vectors(name, range(30), rows, ["a"] * 30)
    first = ask.put_alias(f"{name}-live", index=name, only_new=True)
    assert (first.name, first.index, first.map) == (f"{name}-live", name, None)
    with pytest.raises(PreconditionFailed):
        ask.put_alias(f"{name}-live", index=name, only_new=True)
    copy = ask.copy_index(f"{name}-2", name, bands=None, keep="codes", ttl=600)
    assert (copy.size, copy.bands, copy.keep, copy.ttl) == (30, None, "codes", 600)
    assert ask.count_vectors(f"{name}-2", {"all": ["a"]}) == 30
    third = ask.start_copy(f"{name}-3", name).wait()
    assert (third.size, third.bands, third.rows_per_band, third.keep) == (30, 8, 2, "vectors")
    found = ask.measure_recall(name, k=2, queries=30)
    assert (found.queries, found.size, found.compared_with) == (30, 30, "vectors")
    assert found.recall + sum(found.lost_by.values()) == pytest.approx(1)
    assert ask.start_recall(name, k=2, queries=30).wait() == found.document
    moved = ask.put_alias(f"{name}-live", index=f"{name}-2", if_match=first.digest)
    assert ask.get_index(f"{name}-live").name == f"{name}-2"
    assert ask.get_alias(f"{name}-live") == moved != first
    with pytest.raises(NotModified):
        ask.get_alias(f"{name}-live", if_none_match=moved.digest)
    assert [one.name for one in ask.iter_aliases(name)] == [one.name for one in ask.list_aliases(name).aliases]
    with pytest.raises(IndexInUse) as used:
        ask.delete_index(f"{name}-2")
    assert used.value.aliases == [f"{name}-live"]
    ask.delete_alias(f"{name}-live", if_match=moved.digest)
    with pytest.raises(AliasNotFound):
        ask.get_alias(f"{name}-live")
    ask.put_alias(f"{name}-map", map=name)
    with pytest.raises(MapInUse) as in_use:
        ask.delete_map(name)
    assert (in_use.value.aliases, sorted(in_use.value.indexes)) == ([f"{name}-map"], [name, f"{name}-2", f"{name}-3"])
