"""Near neighbours over HTTP: what searches find, how long they and upserts take, and the room that an index takes."""

import http.client
import io
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import redis
from numpy.typing import NDArray

from benchmarks.clients import serving
from benchmarks.timing import Plan, Report
from service_tests.checks import NPY, npy

TITLE = "Near neighbours"
_LETTERS = Path(__file__).parent.parent / "examples" / "letters.npy"
_K, _BATCH, _RECALL = 10, 1000, 0.95
_HASHING = {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "seed": 7}
_NPZ = {"Content-Type": "application/x-npz"}
_BANDS = {"bands": 8, "rows_per_band": 16}
Rows = NDArray[np.float32]


def upsert(client: httpx.Client, path: str, rows: Iterator[Rows]) -> float:
    """Put batches into an index; gives vectors a second, without the time that it takes to make them."""
    n, seconds = 0, 0.0
    for some in rows:
        body = io.BytesIO()
        np.savez(body, ids=np.arange(n, n + len(some)), vectors=some)
        begun = time.perf_counter()
        client.post(f"{path}/vectors", content=body.getvalue(), headers=_NPZ).raise_for_status()
        seconds += time.perf_counter() - begun
        n += len(some)
    return n / seconds


def searched(client: httpx.Client, path: str, queries: Rows) -> tuple[list[dict[str, Any]], float]:
    """What is found for each of some queries, and the median milliseconds of a search."""
    line = http.client.HTTPConnection(client.base_url.netloc.decode())
    results, milliseconds = [], []
    for query in queries[[0, *range(len(queries))]]:
        body = json.dumps({"vectors": [query.tolist()], "k": _K})
        begun = time.perf_counter()
        line.request("POST", f"{path}/search", body, {"Content-Type": "application/json"})
        answer = line.getresponse().read()
        milliseconds.append(1000 * (time.perf_counter() - begun))
        results += json.loads(answer)["results"]
    return results[1:], statistics.median(milliseconds[1:])


def recall(results: list[dict[str, Any]], queries: Rows, rows: Rows) -> float:
    """The share of the k nearest that is found, by the exact kernel."""
    queries, rows = (np.maximum(np.hstack([some, -some]), 0, dtype=np.float64) for some in (queries, rows))
    found = []
    for result, query in zip(results, queries, strict=True):
        exact = np.minimum(query, rows).sum(axis=1) / np.maximum(query, rows).sum(axis=1)
        least = np.partition(exact, -_K)[-_K] - 1e-9
        found.append((exact[result["ids"]] >= least).sum() / _K)
    return float(np.mean(found))


def advised(report: Report, client: httpx.Client, letters: Rows) -> None:
    """Indexes of letters, as they are and standardised, that are put with a target."""
    n = len(letters) // 40
    client.put("/v1/maps/hashes", json={**_HASHING, "input_dim": letters.shape[1], "s": 512}).raise_for_status()
    scaled = (letters - letters.mean(axis=0)) / letters.std(axis=0)
    table = []
    for called, every in (("as they are", letters), ("standardised", scaled.astype(np.float32))):
        queries, rows = every[:n], every[n:]
        client.put("/v1/datasets/letters", content=npy(rows), headers={"Content-Type": NPY}).raise_for_status()
        asked = {"map": "hashes", "keep": "vectors", "target": {"recall": _RECALL, "k": _K, "dataset": "letters"}}
        record = client.put("/v1/indexes/near", json=asked, headers={"Prefer": "wait=30"}).raise_for_status().json()
        rate = upsert(client, "/v1/indexes/near", (rows[i : i + _BATCH] for i in range(0, len(rows), _BATCH)))
        results, milliseconds = searched(client, "/v1/indexes/near", queries)
        client.delete("/v1/indexes/near").raise_for_status()
        client.delete("/v1/datasets/letters").raise_for_status()
        share = float(np.mean([one["candidates"] for one in results])) / len(rows)
        found = recall(results, queries, rows)
        figures = f"{found:.3f}", f"{share:.1%}", f"{milliseconds:.2f}", f"{rate:,.0f}"
        table.append((called, f"{len(rows):,}", f"{n}", _called(record), *figures))
        report.at_least(f"letters {called}: recall of the adviser's choice", found, _RECALL, f"{found:.3f}")
        title = f"letters {called}: median search over HTTP"
        report.at_most(title, milliseconds, 3, f"{milliseconds:.2f} ms", " ms")
        report.at_least(f"letters {called}: upserts a second", rate, 5000, f"{rate:,.0f}")
    heads = "letters", "rows", "queries", "taken", f"recall@{_K}", "looked at", "median search, ms", "upserts a second"
    report.table(heads, table)


def noisy(letters: Rows, n: int) -> Iterator[Rows]:
    """Batches of n rows in all, each a letter times noise of some hundredths."""
    rng = np.random.default_rng(1)
    for _ in range(0, n, _BATCH):
        some = letters[rng.integers(0, len(letters), _BATCH)]
        yield (some * np.exp(0.03 * rng.standard_normal(some.shape))).astype(np.float32)


def large(report: Report, client: httpx.Client, store: redis.Redis, letters: Rows, n: int) -> None:
    """Indexes of many vectors, one after the other, which are deleted in the end."""
    client.put("/v1/maps/many", json={**_HASHING, "input_dim": letters.shape[1], "s": 128}).raise_for_status()
    before = store.info("memory")["used_memory"]
    keys = set(store.scan_iter("*", 1000))
    table = []
    for bands in ({}, _BANDS):
        record = client.put("/v1/indexes/many", json={"map": "many", **bands}).raise_for_status().json()
        rate = upsert(client, "/v1/indexes/many", noisy(letters, n))
        taken = store.info("memory")["used_memory"] - before
        results, milliseconds = searched(client, "/v1/indexes/many", letters[:200])
        share = float(np.mean([one["candidates"] for one in results])) / n
        client.delete("/v1/indexes/many").raise_for_status()
        left = {key for key in set(store.scan_iter("*", 1000)) - keys if b"many" in key}
        called = _called(record)
        told = f"{taken / n:.0f}", f"{share:.1%}", f"{milliseconds:.2f}", f"{rate:,.0f}", f"{len(left)}"
        table.append((called, *told))
        report.at_most(f"{n:,} vectors, {called}: bytes a vector", taken / n, 450, f"{taken / n:.0f}")
        title = f"{n:,} vectors, {called}: median search over HTTP"
        report.at_most(title, milliseconds, 8, f"{milliseconds:.2f} ms", " ms")
        report.at_most(f"{n:,} vectors, {called}: keys that are left by a deletion", len(left), 0, f"{len(left)}")
    heads = "bands", "bytes a vector", "looked at", "median search, ms", "upserts a second", "keys left"
    report.table(heads, table)


def run(report: Report, plan: Plan) -> None:
    """Print the figures."""
    if plan.data is None:
        letters = np.load(_LETTERS)
    else:
        every = np.load(plan.data / "letter.npz")["X"]
        letters = every[np.random.default_rng(0).permutation(len(every))].astype(np.float32)
    letters = letters[: 2000 if plan.tiny else None]
    report.say(
        f"Letters as they are, not negative, and standardised, over loopback, one search at a time. The map has 512 "
        f"hashes; an index that keeps vectors is put with a target of {_RECALL} for the {_K} nearest, and the rest of "
        f"the letters are queries that it does not hold. Then many vectors, letters times small noise, of 128 hashes, "
        f"codes alone, scanned, and in bands. Bytes of the store are those that it uses more than before."
    )
    with tempfile.TemporaryDirectory() as folder:
        options = ["--data-dir", folder, "--log-level", "warning", "--cache-bytes", str(1 << 30)]
        with (
            serving("app", "serve", *options, ready="/health/ready") as (address, _),
            httpx.Client(base_url=f"http://{address}", timeout=600) as client,
            redis.Redis(unix_socket_path=f"{folder}/store.sock") as store,
        ):
            advised(report, client, letters)
            large(report, client, store, letters, 3000 if plan.tiny else 1_000_000)


def _called(record: dict[str, Any]) -> str:
    return "scan" if record["banding"] == "scan" else f"{record['bands']} bands of {record['rows_per_band']}"
