"""Advice on letters: that new queries find as much as it says, and what codes alone serve for."""

import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.indexes.advice import AdviceOptions, advice_bytes, advise, check
from app.core.indexes.banding import order_of_codes
from app.core.indexes.hashed_rows import hash_rows
from app.core.maps import FeatureMap
from app.core.progress import Progress, no_pause
from service_tests.cases import with_nightly
from service_tests.core.specs import fourier, hashing

LETTERS = np.load(Path(__file__).parents[3] / "examples" / "letters.npy").astype(np.float64)
STANDARDISED = (LETTERS - LETTERS.mean(axis=0)) / LETTERS.std(axis=0)
# Like images: all rows are similar to each other, so that bands tell little of neighbours.
SIMILAR = 10 + np.random.default_rng(8).normal(size=(1500, 30))


def asked(**options: Any) -> AdviceOptions:
    return AdviceOptions(map="m", dataset="d", **options)


@cache
def advice(rows: str, **options: Any) -> Any:
    """Advice on some rows, and its picture."""
    of = {"positive": LETTERS, "signed": STANDARDISED, "similar": SIMILAR}[rows]
    return advise(made(of), of[:1700], asked(**options), Progress(), 2)


def made(rows: Any) -> FeatureMap:
    """A map for some rows; positive ones are so similar that it takes more hashes to tell them apart."""
    return hashing(input_dim=rows.shape[1], s=1024 if rows is LETTERS else 256, threads=2)


def searched(one: FeatureMap, rows: Any, queries: Any, bands: int, r: int, k: int) -> tuple[float, float]:
    """Recall of candidates and the share of rows that are candidates, by looking at all bands."""
    codes, wanted = hash_rows(one, rows, no_pause), hash_rows(one, queries, no_pause)
    gram = one.exact_gram(queries, rows)
    near = np.argsort(-gram, axis=1, kind="stable")[:, :k]
    dealt = order_of_codes(codes.shape[1])[: bands * r]
    same = (wanted[:, None, dealt] == codes[:, dealt]).reshape(len(queries), len(rows), bands, r)
    is_candidate = same.all(axis=3).any(axis=2)
    return float(np.take_along_axis(is_candidate, near, axis=1).mean()), float(is_candidate.mean())


@pytest.mark.gate
@pytest.mark.parametrize("rows", with_nightly(["signed"], ["positive"]))
def test_queries_that_nothing_was_chosen_by_find_as_much(rows: str) -> None:
    every = {"positive": LETTERS, "signed": STANDARDISED}[rows]
    found = advice(rows, recall=0.9, candidates=200).answer
    serving = [one for one in found["bandings"] if one["serves"]]
    assert serving
    for one in (serving[0], serving[-1]):
        recall, share = searched(made(every), every[:1700], every[1700:], one["bands"], one["rows_per_band"], 10)
        # Of 300 queries, whose shares of ten neighbours have a standard deviation of some .15.
        error = 0.15 / np.sqrt(300)
        assert recall > 0.9 - 2 * error
        assert abs(recall - one["checked"]["recall"]) < 4 * error
        assert share < 1.4 * one["checked"]["share"]
        assert share < 0.16


@pytest.mark.gate
def test_codes_alone_serve_where_they_find_as_much() -> None:
    found = {keep: advice("signed", k=1, recall=0.75, keep=keep).answer for keep in ("codes", "vectors")}
    scans = {keep: one["scan"] for keep, one in found.items()}
    assert scans["codes"]["recall_of_search"] == scans["codes"]["recall"] == scans["vectors"]["recall"]
    assert scans["vectors"]["recall_of_search"] > scans["codes"]["recall_of_search"] + 0.02
    assert scans["codes"]["recall_of_search"] > 0.8
    assert all(one["serves"] for one in scans.values())
    # Of ten neighbours they find too few, however many bands there are.
    few = advice("signed", keep="codes").answer
    assert few["scan"]["recall_of_search"] < 0.9
    assert not few["scan"]["serves"]
    assert not any(one["serves"] for one in few["bandings"])
    assert few["why"].endswith("take a map of more hashes, or keep vectors")
    for one in found["codes"]["bandings"]:
        assert not one["serves"] or one["recall_of_codes"] == one["recall_of_search"] >= 0.75


def test_too_few_rows_and_maps_without_codes_are_refused() -> None:
    for n, k in ((99, 10), (199, 100)):
        with pytest.raises(InvalidInput, match=rf"has {n} rows; advice for {k} neighbours wants {n + 1}"):
            check(hashing(s=8), n, k)
    check(hashing(s=8), 100, 10)
    with pytest.raises(InvalidInput, match="weights of their own"):
        check(fourier(s=None, sampler={"kind": "sparse_grid", "level": 1}), 100, 10)


def test_the_smallest_dataset_and_the_smallest_map_have_advice() -> None:
    rows = np.random.default_rng(9).normal(size=(100, 4))
    found = advise(hashing(s=1), rows, asked(k=50), Progress(), 1).answer
    assert (found["rows"], found["queries"]) == (80, 20)
    assert [one["rows_per_band"] for one in found["bandings"]] == [1]


@pytest.mark.nightly
def test_it_takes_no_more_memory_than_it_says() -> None:
    rows, one = np.random.default_rng(9).normal(size=(20_000, 4)), hashing(s=512)
    tracemalloc.start()
    advise(one, rows, asked(), Progress(), 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < advice_bytes(one, rows, 10) < 4 * peak
