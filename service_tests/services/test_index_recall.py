"""Recall of an index, and what loses the rest, against all similarities and searches of one vector after another."""

from typing import Any

import numpy as np
import orjson
import pytest

from app.container import Container
from app.core.arrays import Matrix
from app.core.errors import InvalidInput
from app.core.indexes.banding import order_of_codes
from app.core.indexes.options import Batch, DeleteOptions, SearchOptions
from app.core.progress import Progress
from app.services import index_recall
from app.services.index_copies import AskedCopy
from app.services.index_recall import RecallOptions
from app.services.index_search import Result, Search
from app.store.named import LivingStore
from service_tests.services.crowds import GMM, SIGNED, crowded, gaussian, min_max, remove, service_with

N, K, MOST = 400, 3, 20
"""`K` results are taken from 51 candidates by codes, and `MOST`, which stands for 1,000, from 100."""
FEW = {"gmm": GMM | {"s": 16}, "gaussian": SIGNED | {"s": 32}}


def filled(url: str, spec: dict[str, Any], **asked: Any) -> tuple[Container, Matrix]:
    service, rows = service_with(url, spec, **asked), crowded(np.random.default_rng(5), N)
    service.index_upserts.upsert("i", lambda *_: Batch(rows, [*range(N)], None))
    return service, rows


def measured(service: Container, **asked: Any) -> dict[str, Any]:
    options = RecallOptions(**asked)
    assert service.recall.submit("i", options).kind == "recall"
    token = service.indexes.open("i").manifest.token
    payload = {"index": "i", "token": token, "options": options.model_dump_json()}
    answer: dict[str, Any] = orjson.loads(service.recall.answer(payload, Progress()))
    return answer


def searched(service: Container, **options: Any) -> list[Result]:
    """The results of each vector of the index."""
    wanted = SearchOptions(ids=tuple(range(N)), **options)
    return service.index_vectors.search("i", lambda _: (wanted, None))[0]


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(("spec", "kernel"), [("gmm", min_max), ("gaussian", gaussian)])
@pytest.mark.parametrize("bands", [None, 4])
def test_recall_is_that_of_searches_and_what_loses_the_rest_is_told(
    store_url: str, monkeypatch: pytest.MonkeyPatch, spec: str, kernel: Any, bands: int | None
) -> None:
    monkeypatch.setattr(index_recall, "MOST_RESULTS", MOST)
    banding = {} if bands is None else {"bands": bands, "rows_per_band": 4 if spec == "gmm" else 8}
    service, rows = filled(store_url, FEW[spec], keep="vectors", **banding)
    similarity = kernel(rows, rows)
    np.fill_diagonal(similarity, -1)
    opened = service.indexes.open("i")
    packed = opened.codes.pack(opened.feature_map, rows)
    codes = packed if spec == "gmm" else np.unpackbits(packed, axis=1, bitorder="little")
    shape = (1, 1) if bands is None else (bands, banding["rows_per_band"])
    of_bands = codes[:, order_of_codes(opened.layout.s)[: shape[0] * shape[1]]].reshape(N, *shape)
    recall, lost = np.empty(N), {"bands": 0, "k": 0, "codes": 0}
    for i, (own, wide) in enumerate(zip(searched(service, k=K), searched(service, k=MOST), strict=True)):
        nearest = np.argsort(-similarity[i], kind="stable")[:K].tolist()
        recall[i] = np.mean([one in own["ids"] for one in nearest])
        shares = np.full(N, own["searched"] == "scan") | (of_bands == of_bands[i]).all(axis=2).any(axis=1)
        for one in nearest:
            if one not in own["ids"]:
                lost["k" if one in wide["ids"] else "codes" if shares[one] else "bands"] += 1
    answer = measured(service, k=K, queries=N)
    assert answer["recall"] == pytest.approx(recall.mean())
    assert answer["standard_error"] == pytest.approx(recall.std(ddof=1) / np.sqrt(N))
    assert answer["lost_by"] == pytest.approx({by: count / (N * K) for by, count in lost.items()})
    assert answer["candidates"] == np.mean([one["candidates"] for one in searched(service, k=K)])
    assert (answer["compared_with"], answer["queries"], answer["size"]) == ("vectors", N, N)
    assert lost["k"] > 0
    assert lost["bands" if bands else "codes"] > 0
    assert bands or not lost["bands"]
    some = measured(service, k=K, queries=100, seed=1)
    assert abs(some["recall"] - recall.mean()) < 4 * some["standard_error"]
    assert some == measured(service, k=K, queries=100, seed=1) != measured(service, k=K, queries=100, seed=2)


@pytest.mark.usefixtures("client")
def test_an_index_of_codes_is_compared_with_a_scan_of_them(store_url: str) -> None:
    service, _ = filled(store_url, FEW["gmm"], keep="codes", bands=2, rows_per_band=4)
    every = zip(searched(service, k=K), searched(service, k=K, scan=True), strict=True)
    # As many of the same similarity do as well.
    found = [np.sum(np.array(own["similarity"]) >= scan["similarity"][-1] - 1e-9) / K for own, scan in every]
    answer = measured(service, k=K, queries=N)
    assert answer["recall"] == pytest.approx(np.mean(found))
    assert answer["lost_by"] == {"bands": pytest.approx(1 - np.mean(found)), "k": 0, "codes": 0}
    assert answer["compared_with"] == "codes"
    assert np.mean(found) < 1


@pytest.mark.usefixtures("client")
def test_vectors_may_be_deleted_meanwhile(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service, _ = filled(store_url, FEW["gmm"], keep="vectors")
    results_by, first = Search.results_by, 0

    def delete_some(search: Search, *given: Any) -> list[Result]:
        """Also some that are queries."""
        nonlocal first
        remove(service, "i", DeleteOptions(ids=tuple(range(first, first + 5))))
        first += 5
        return results_by(search, *given)

    monkeypatch.setattr(Search, "results_by", delete_some)
    answer = measured(service, k=K, queries=N)
    assert first == 5 * N // 10
    assert (answer["queries"], answer["size"]) == (N, N)
    assert 0 < answer["recall"] <= 1


@pytest.mark.usefixtures("client")
def test_too_few_vectors_are_refused(store_url: str) -> None:
    service = service_with(store_url, GMM)
    service.index_upserts.upsert("i", lambda *_: Batch(np.eye(5)[:3], [1, 2, 3], None))
    with pytest.raises(InvalidInput, match="has 3 vectors"):
        measured(service, k=3)
    assert measured(service, k=2, queries=2)["recall"] == 1


@pytest.mark.usefixtures("client")
def test_indexes_in_use_do_not_expire(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service, rows = filled(store_url, FEW["gmm"], keep="vectors")
    token = service.indexes.open("i").manifest.token
    used, using = list[set[str]](), LivingStore.using

    def noted(store: LivingStore[Any], *things: Any) -> Any:
        used.append({one.name for one in things})
        return using(store, *things)

    monkeypatch.setattr(LivingStore, "using", noted)
    measured(service, k=K, queries=N)
    service.duplicates.answer({"index": "i", "token": token, "options": '{"min_similarity": 0.9}'}, Progress())
    service.copies.submit("copy", AskedCopy.model_validate({"from": "i"}), None)
    copy = service.indexes.open("copy").manifest.token
    service.copies.copy({"from": ["i", token], "to": ["copy", copy]}, Progress(), "")
    service.index_upserts.upsert("i", lambda *_: Batch(rows, [*range(N)], None))
    remove(service, "i", DeleteOptions(ids=(1, 2)))
    service.index_vectors.search("i", lambda _: (SearchOptions(ids=(3,)), None))
    assert used == [{"i"}, {"i"}, {"i", "copy"}, {"i"}, {"i"}, {"i"}]


@pytest.mark.usefixtures("client")
def test_recall_is_of_the_nearest_also_where_every_similarity_is_tiny(store_url: str) -> None:
    tiny = FEW["gaussian"] | {"kernel": {"kind": "gaussian", "length_scale": 0.08}}
    service, rows = filled(store_url, tiny, keep="vectors")
    lags = np.square(rows[:, None] - rows).sum(axis=2) + np.diag(np.full(N, np.inf))
    pairs = zip(searched(service, k=K), np.argsort(lags, axis=1)[:, :K].tolist(), strict=True)
    recall = np.mean([np.isin(nearest, own["ids"]).mean() for own, nearest in pairs])
    assert recall < 0.9
    assert measured(service, k=K, queries=N)["recall"] == pytest.approx(recall)
