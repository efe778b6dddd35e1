"""Advice on indexes over HTTP."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.checks import assert_problem, put, put_dataset

LETTERS = np.load(Path(__file__).parents[3] / "examples" / "letters.npy")
HASHES: dict[str, Any] = {"input_dim": 16, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 256}


@pytest.fixture
def there(http: httpx.Client, name: str) -> str:
    """The name of a map, and of a dataset of standardised letters."""
    rows = (LETTERS - LETTERS.mean(axis=0)) / LETTERS.std(axis=0)
    assert put(http, name, HASHES).status_code == 201
    assert put_dataset(http, name, rows).status_code == 201
    return name


def test_the_best_bands_find_the_neighbours_among_few_rows(http: httpx.Client, there: str) -> None:
    answer = http.post("/v1/indexes/advice", json={"map": there, "dataset": there, "k": 5, "recall": 0.9})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["rows"], found["queries"], found["candidates"]) == (1600, 400, 160)
    serving = [one for one in found["bandings"] if one["serves"]]
    assert all(one["checked"]["recall"] >= 0.9 and one["candidates"] <= 160 for one in serving)
    best = [{name: one[name] for name in ("bands", "rows_per_band")} for one in serving]
    assert found["best"] in ["scan", *best]
    assert "microseconds" in found["why"]


def test_sparse_rows_count_as_they_are_compared(http: httpx.Client, name: str) -> None:
    wide = {"input_dim": 4_000_000, "s": 1, "kernel": {"kind": "gaussian", "length_scale": 1000.0}}
    assert put(http, name, wide | {"sampler": {"kind": "monte_carlo"}}).status_code == 201
    rows = [{"indices": [i], "values": [0.5]} for i in range(400)]
    http.put(f"/v1/datasets/{name}", json={"input_dim": 4_000_000, "vectors": rows}).raise_for_status()
    answer = http.post("/v1/indexes/advice", json={"map": name, "dataset": name, "k": 1})
    assert assert_problem(http, answer, 413, "too-large")["limit"] == "max_job_bytes"
