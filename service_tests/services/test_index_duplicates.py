"""Pairs and clusters of duplicates, against the similarities of all pairs."""

from typing import Any

import numpy as np
import orjson
import pytest
from scipy.sparse.csgraph import connected_components

from app.container import Container
from app.core.arrays import Matrix
from app.core.errors import InvalidInput
from app.core.indexes.options import Batch, DuplicatesOptions
from app.core.progress import Progress
from app.services import index_duplicates
from service_tests.services.crowds import GMM, SIGNED, crowded, gaussian, min_max, service_with

N, LEAST = 150, 0.75


def filled(url: str, spec: dict[str, Any], keep: str) -> tuple[Container, Matrix]:
    """An index with the rows under their numbers, every third of which has a tag."""
    service, rows = service_with(url, spec, keep=keep), crowded(np.random.default_rng(12), N)
    tags = ["third" if i % 3 == 0 else None for i in range(N)]
    service.index_upserts.upsert("i", lambda *_: Batch(rows, [*range(N)], tags))
    return service, rows


def pages(service: Container, **asked: Any) -> list[dict[str, Any]]:
    options = DuplicatesOptions.model_validate_json(orjson.dumps({"min_similarity": LEAST, **asked}))
    job = service.duplicates.submit("i", options)
    assert job.kind == "duplicates"
    token = service.indexes.open("i").manifest.token
    payload = {"index": "i", "token": token, "options": options.model_dump_json()}
    return [*map(orjson.loads, service.duplicates.answer(payload, Progress()))]


def found(service: Container, **asked: Any) -> dict[str, Any]:
    (answer,) = pages(service, **asked)
    assert answer.pop("next") is None
    return answer


def representatives(similarity: Matrix, order: list[int]) -> dict[int, dict[int, float]]:
    """Each row joins the most similar of those that are kept before it, if that is similar enough."""
    kept: dict[int, dict[int, float]] = {}
    for i in order:
        best = max(kept, key=lambda j: similarity[i, j], default=None)
        if best is None or similarity[i, best] < LEAST:
            kept[i] = {}
        else:
            kept[best][i] = similarity[i, best]
    return {i: others for i, others in kept.items() if others}


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(("spec", "kernel"), [(GMM, min_max), (SIGNED, gaussian)])
def test_exact_pairs_and_clusters_are_those_of_all_pairs(store_url: str, spec: dict[str, Any], kernel: Any) -> None:
    service, rows = filled(store_url, spec, "vectors")
    similarity = kernel(rows, rows)
    pairs = found(service, answer="pairs")["pairs"]
    wanted = {(i, j) for i in range(N) for j in range(i + 1, N) if similarity[i, j] >= LEAST}
    assert {(min(one["a"], one["b"]), max(one["a"], one["b"])) for one in pairs} == wanted
    assert len(pairs) == len(wanted) > 100
    assert 20 < sum("exact" in one for one in pairs) < len(pairs)  # pairs that are surely similar are not compared
    for one in pairs:
        exact = similarity[one["a"], one["b"]]
        assert abs(one["similarity"] - exact) < 0.2
        assert one.get("exact", exact) == pytest.approx(exact, rel=1e-9)

    clusters = found(service, answer="clusters")["clusters"]
    _, parts = connected_components(similarity >= LEAST)
    linked = [{*np.flatnonzero(parts == part).tolist()} for part in range(parts.max() + 1)]
    assert sorted(map(sorted, (one["ids"] for one in clusters))) == sorted(
        sorted(one) for one in linked if len(one) > 1
    )
    for one in clusters:
        assert one["keep"] == one["ids"][0] == min(one["ids"])
        assert one["similarity_to_kept"] == pytest.approx(similarity[one["keep"], one["ids"]], rel=1e-9)

    clusters = found(service, answer="clusters", linkage="representative")["clusters"]
    kept = representatives(similarity, [*range(N)])
    assert {one["keep"]: {*one["ids"][1:]} for one in clusters} == {i: {*others} for i, others in kept.items()}
    assert all(value >= LEAST - 0.2 for one in clusters for value in one["similarity_to_kept"])
    assert [len(one["ids"]) for one in clusters] == sorted((len(one["ids"]) for one in clusters), reverse=True)
    assert found(service, exact=True)["clusters"] == [
        one["ids"] for one in found(service, answer="clusters")["clusters"]
    ]


@pytest.mark.usefixtures("client")
def test_codes_decide_without_exact_comparison(store_url: str) -> None:
    service, rows = filled(store_url, GMM, "codes")
    opened = service.indexes.open("i")
    codes = opened.codes.pack(opened.feature_map, rows)
    similarity = ((codes[:, None] == codes).mean(axis=2) - 1 / 256) / (1 - 1 / 256) + 1e-9
    pairs = found(service, answer="pairs")["pairs"]
    wanted = {(i, j) for i in range(N) for j in range(i + 1, N) if similarity[i, j] >= LEAST}
    assert {(one["a"], one["b"]) for one in pairs} == wanted
    assert all(one["similarity"] == pytest.approx(similarity[one["a"], one["b"]], abs=1e-6) for one in pairs)
    clusters = found(service, answer="clusters", linkage="representative")["clusters"]
    apart = representatives(similarity, [*range(N)])
    assert {one["keep"]: len(one["ids"]) - 1 for one in clusters} == {i: len(others) for i, others in apart.items()}
    single = found(service, answer="clusters")["clusters"]
    assert [one["ids"] for one in single] == found(service)["clusters"]
    for one in single:
        assert one["similarity_to_kept"] == pytest.approx(similarity[one["keep"], one["ids"]], abs=1e-6)
    third = found(service, answer="pairs", filter={"all": ["third"]})
    assert third["size"] == N // 3
    assert {(one["a"], one["b"]) for one in third["pairs"]} == {one for one in wanted if not one[0] % 3 | one[1] % 3}
    for asked in ({"exact": True}, {"keep_which": "longest"}):
        with pytest.raises(InvalidInput, match=f"{next(iter(asked))} needs vectors"):
            service.duplicates.submit("i", DuplicatesOptions(min_similarity=0.5, **asked))


@pytest.mark.usefixtures("client")
def test_the_longest_is_kept(store_url: str) -> None:
    service = service_with(store_url, GMM, keep="vectors")
    rows = np.array([[1.0, 2, 3, 0, 0], [1, 2, 3, 0.01, 0], [1, 2, 3, 0.01, 0.01], [9, 0, 0, 0, 1], [9, 0, 0, 0.01, 1]])
    service.index_upserts.upsert("i", lambda *_: Batch(rows, ["a", 7, "b", "c", 3], None))
    clusters = found(service, answer="clusters", keep_which="longest")["clusters"]
    assert [one["ids"] for one in clusters] == [["b", 7, "a"], [3, "c"]]
    assert [one["ids"] for one in found(service, answer="clusters")["clusters"]] == [[7, "a", "b"], [3, "c"]]


@pytest.mark.usefixtures("client")
def test_more_pairs_than_a_job_looks_at_are_refused(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service, _ = filled(store_url, GMM, "codes")
    n = len(found(service, answer="pairs")["pairs"])
    monkeypatch.setattr(index_duplicates, "_MOST_PAIRS", n - 1)
    with pytest.raises(InvalidInput, match="pairs are that similar: ask for clusters by representatives"):
        found(service, answer="pairs")
    assert found(service, answer="clusters", linkage="representative")["clusters"]


@pytest.mark.usefixtures("client")
def test_pages_have_what_one_answer_has(store_url: str) -> None:
    service, _ = filled(store_url, GMM, "codes")
    asked = {"min_similarity": 0.05, "answer": "pairs"}
    whole, cut = found(service, **asked), pages(service, **asked, limit=1000)
    n, step = len(whole["pairs"]), 1000
    assert n > 2 * step
    assert [one.pop("next") for one in cut] == [*map(str, range(1, len(cut))), None]
    assert [one.pop("pairs") for one in cut] == [whole["pairs"][i : i + step] for i in range(0, n, step)]
    assert all(one == {name: value for name, value in whole.items() if name != "pairs"} for one in cut)
    (none,) = pages(service, **asked, limit=1000, filter={"all": ["missing"]})
    assert (none["pairs"], none["next"]) == ([], None)
