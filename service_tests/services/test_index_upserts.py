"""Vectors that are like others are not put into an index, whoever puts them there."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import redis
from scipy.sparse import csr_array

from app.container import Container
from app.core.arrays import Rows
from app.core.errors import TooLarge
from app.core.indexes import labels
from app.core.indexes.options import Batch, SearchOptions
from app.services import index_search, index_upserts
from app.services.errors import VectorNotFound
from app.services.index_upserts import Rule, Upserted
from app.services.indexes import AskedIndex
from app.store.indexes import IndexStore
from service_tests.races import at_once
from service_tests.services.crowds import GMM, SIGNED, crowded, gaussian, min_max, service_with


@pytest.fixture
def url(client: redis.Redis, store_url: str) -> str:
    """An empty store."""
    assert client.dbsize() == 0
    return store_url


def put(service: Container, ids: Sequence[object], rows: Rows, least: float | None, is_dry: bool = False) -> Upserted:
    rule = Rule(unless_similar=least, is_dry=is_dry)
    return service.index_upserts.upsert("i", lambda *_: Batch(rows, ids, None), rule)


@pytest.mark.parametrize(("spec", "kernel"), [(GMM, min_max), (SIGNED, gaussian)])
@pytest.mark.parametrize(("is_sparse", "one_by_one"), [(False, False), (True, False), (False, True), (True, True)])
def test_those_are_refused_that_are_exactly_as_similar_to_one_before(
    url: str, spec: dict[str, Any], kernel: Any, is_sparse: bool, one_by_one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_search, "_MORE_AT_ONCE", 0 if one_by_one else 10**9)
    rows, least = crowded(np.random.default_rng(8), 240), 0.75
    service = service_with(url, spec, keep="vectors")
    similarity = kernel(rows, rows)
    kept, refused = list[int](), dict[int, Any]()
    for first in (0, 60, 200):
        some = range(first, {0: 60, 60: 200, 200: 240}[first])
        before = [*kept]
        for i in some:
            # One of the index comes first, even if one of the batch is more similar.
            for others in (before, [j for j in kept if j not in before]):
                if others and similarity[i, others].max() >= least:
                    refused[i] = others[int(similarity[i, others].argmax())]
                    break
            else:
                kept.append(i)
        part: Rows = csr_array(rows[some.start : some.stop]) if is_sparse else rows[some.start : some.stop]
        for is_dry in (True, False):
            answer = put(service, [*some], part, least, is_dry)
            assert answer.inserted == [i for i in some if i in kept]
            assert {one["id"]: one["like"] for one in answer.refused} == {i: refused[i] for i in some if i in refused}
            for one in answer.refused:
                assert one["exact"] == pytest.approx(similarity[one["id"], one["like"]], rel=1e-9)
                assert abs(one["similarity"] - one["exact"]) < 0.2  # more than four standard errors
        assert service.index_vectors.count("i", None) == len(kept)
    assert min(len(kept), len(refused)) > 25


@pytest.mark.parametrize("bands", [{}, {"bands": 64, "rows_per_band": 4}])
def test_codes_decide_where_no_vectors_are_kept(url: str, bands: dict[str, Any]) -> None:
    """By the share of hashes that agree, of 8 bits: it is J + (1 - J) / 256 on average."""
    rows, least = crowded(np.random.default_rng(9), 200), 0.75
    service = service_with(url, GMM, **bands)
    opened = service.indexes.open("i")
    codes = opened.codes.pack(opened.feature_map, rows)
    estimates = ((codes[:, None] == codes).mean(axis=2) - 1 / 256) / (1 - 1 / 256)
    kept = list[int]()
    for i in range(200):
        answer = put(service, [i], rows[i : i + 1], least)
        is_like = bool(kept) and estimates[i, kept].max() >= least - 1e-9
        assert (answer.inserted, len(answer.refused)) == (([], 1) if is_like else ([i], 0))
        if is_like:
            (one,) = answer.refused
            assert set(one) == {"id", "like", "similarity"}
            assert one["similarity"] == pytest.approx(estimates[i, kept].max(), abs=1e-6)
            assert estimates[i, one["like"]] == estimates[i, kept].max()
        else:
            kept.append(i)
    again = service_with(url, GMM, **bands)
    again.indexes.delete("i")
    again.indexes.create("i", AskedIndex(map="m", **bands), None)
    assert put(again, [*range(200)], rows, least).inserted == kept
    assert min(len(kept), 200 - len(kept)) > 25


def test_a_vector_is_not_like_its_own_earlier_version(url: str) -> None:
    service = service_with(url, GMM, keep="vectors")
    rows = np.array([[1.0, 2, 3, 4, 5], [9, 0, 0, 0, 1], [1, 2, 3, 4, 5.1]])
    assert put(service, ["a", "b"], rows[:2], 0.9).inserted == ["a", "b"]
    for _ in range(2):  # a call that is repeated gives the same answer
        answer = put(service, ["a", "b", "c"], rows, 0.9)
        assert answer.inserted == ["a", "b"]
        assert [(one["id"], one["like"]) for one in answer.refused] == [("c", "a")]
    answer = put(service, ["b"], rows[2:], 0.9)  # the version that is there stays
    assert [(one["id"], one["like"]) for one in answer.refused] == [("b", "a")]
    shown = service.index_vectors.get("i", "b", has_vector=True)
    assert shown["vector"].tolist() == [9, 0, 0, 0, 1]
    assert put(service, ["b"], rows[2:], None).inserted == ["b"]


def test_a_vector_of_an_index_is_compared_with_others_as_they_are_at_the_same_time(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although all vectors change before each time that some are read."""
    service, read, states = service_with(url, GMM, keep="vectors"), IndexStore.vectors, list[Any]()
    rng = np.random.default_rng(3)

    def change_and_read(*args: Any) -> Any:
        states.append(rng.random((6, 5)))
        put(service, [*range(6)], states[-1], None)
        return read(*args)

    put(service, [*range(6)], rng.random((6, 5)), None)
    monkeypatch.setattr(IndexStore, "vectors", change_and_read)
    (result,), *_ = service.index_vectors.search("i", lambda _: (SearchOptions(k=5, ids=(2,)), None))
    kernel = service.indexes.open("i").feature_map.kernel
    exact = [kernel.exact(state[2:3], state[result["ids"]])[0] for state in states]
    assert any(np.allclose(result["exact"], one, rtol=1e-9) for one in exact)


@pytest.mark.parametrize("by", ["upserts", "removals"])
def test_codes_of_a_vector_are_compared_with_those_of_others_of_the_same_state(
    url: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although all vectors change, or move, between the looks at others and at it; in each state, all are equal."""
    service = service_with(url, GMM)
    rng = np.random.default_rng(3)

    def put_equal() -> None:
        put(service, [*range(6)], np.tile(rng.random(5), (6, 1)), None)

    def change_and(look: Callable[..., Any], store: IndexStore, manifest: Any, keys: Any) -> Any:
        if by == "upserts":
            put_equal()
        else:
            store.remove(manifest, labels.encode_ids([0], "")[0])
        return look(store, manifest, keys)

    put_equal()
    for look in (IndexStore.slots, IndexStore.rows):
        monkeypatch.setattr(IndexStore, look.__name__, lambda *args, look=look: change_and(look, *args))
    results, *_ = service.index_vectors.search("i", lambda _: (SearchOptions(k=6, ids=(5, 2)), None))
    assert [one["similarity"] for one in results] == [[1.0] * 5] * 2
    assert [{*one["ids"]} for one in results] == [{*range(6)} - {5}, {*range(6)} - {2}]


def test_no_vector_is_read_for_a_query_that_has_been_removed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates that waited for it, uncounted, took 1.4 GB."""
    service, read, reads = service_with(url, GMM, keep="vectors"), IndexStore.vectors, list[int]()

    def remove_and_read(store: IndexStore, manifest: Any, keys: Any, _: int) -> Any:
        IndexStore.remove(store, manifest, labels.encode_ids([2], "")[0])
        found = read(store, manifest, keys, 1)
        reads.append(len(found))
        return found

    put(service, [*range(6)], np.random.default_rng(3).random((6, 5)), None)
    monkeypatch.setattr(IndexStore, "vectors", remove_and_read)
    with pytest.raises(VectorNotFound):
        service.index_vectors.search("i", lambda _: (SearchOptions(k=5, ids=(2,)), None))
    assert len(reads) <= 2


def test_writers_at_once_put_no_two_that_are_similar(url: str) -> None:
    """10,000 vectors by two processes: 40 centres, and all around one are similar. A third changes the index too."""
    centres = np.random.default_rng(5).gamma(0.3, size=(40, 5)).astype(np.float32)
    far = -np.ones((1, 5))
    services = [service_with(url, GMM, bands=64, rows_per_band=4) for _ in range(3)]

    def write(writer: int) -> None:
        service, rng = services[writer], np.random.default_rng(writer)
        for batch in range(200):
            if writer == 2:
                put(service, ["other"], far, None)
                service.index_vectors.remove("i", "other")
                continue
            which = rng.integers(40, size=25)
            rows = centres[which] * np.exp(rng.normal(0, 0.01, (25, 5)))
            put(service, [f"{writer} {batch} {i} {which[i]}" for i in range(25)], rows, 0.6)

    at_once(3, write)
    there, before = [], None
    while before != 0:
        page, before = services[0].index_vectors.read_page("i", before, 1000, None, as_text=False)
        there += [int(one["id"].rpartition(" ")[2]) for one in page]
    assert 20 < len(there) <= 40
    assert len({*there}) == len(there)


def test_vectors_are_compared_again_however_long_that_has_taken(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service, other = service_with(url, GMM), service_with(url, GMM)
    upserts, clock = service.index_upserts, [0.0]
    monkeypatch.setattr(index_upserts, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    compare = type(upserts)._compare

    def interrupted(*args: Any) -> Any:
        found = compare(*args)
        if not clock[0]:
            clock[0] = 100.0
            put(other, ["other"], np.ones((1, 5)), None)
        return found

    monkeypatch.setattr(type(upserts), "_compare", interrupted)
    assert [one["like"] for one in put(service, ["mine"], np.ones((1, 5)), 0.9).refused] == ["other"]


@pytest.mark.parametrize("n", [40, 300])
def test_a_copy_is_found_among_any_number_that_are_as_near_by_codes(url: str, n: int) -> None:
    """In the index, and within a batch: all codes are equal, and vectors differ by less than a thousandth."""
    service = service_with(url, {**SIGNED, "s": 64}, keep="vectors")
    rows = 1 + np.random.default_rng(6).normal(0, 1e-4, (n, 5)).astype(np.float32).astype(np.float64)
    assert put(service, [*range(n)], rows, 1).inserted == [*range(n)]
    again = put(service, [f"copy of {i}" for i in range(n)], rows, 1)
    assert (again.inserted, [one["like"] for one in again.refused]) == ([], [*range(n)])
    both = put(service, [*range(n), *map(str, range(n))], np.concatenate([rows, rows]), 1, is_dry=True)
    assert both.inserted == [*range(n)]


def test_rows_of_a_request_are_copied_without_those_that_are_skipped_if_the_copy_is_not_too_large(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOCHNER_MAX_DATASET_BYTES", "30000")
    spec = {**GMM, "input": {"scale": 0.5}}
    service, rows = service_with(url, spec), np.ones((1000, 5), np.float32)  # of 20,000 bytes, 40,000 in float64

    def upsert() -> Upserted:
        return service.index_upserts.upsert("i", lambda *_: Batch(rows, range(1000), None), Rule(skips=True))

    assert len(upsert().inserted) == 1000
    rows[3] = 0
    with pytest.raises(TooLarge, match="the rows would take 40000 bytes"):
        upsert()
