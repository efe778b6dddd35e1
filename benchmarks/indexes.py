"""Near neighbours over HTTP: what searches find, how long they and upserts take, and the room that an index takes."""

import io
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
_BANDS = {"bands": 32, "rows_per_band": 4}
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
    results, milliseconds = [], []
    client.post(f"{path}/search", json={"vectors": queries[:1].tolist(), "k": _K}).raise_for_status()
    for query in queries:
        body = {"vectors": [query.tolist()], "k": _K}
        begun = time.perf_counter()
        answer = client.post(f"{path}/search", json=body)
        milliseconds.append(1000 * (time.perf_counter() - begun))
        results += answer.raise_for_status().json()["results"]
    return results, statistics.median(milliseconds)


def recall(results: list[dict[str, Any]], queries: Rows, rows: Rows) -> float:
    """The share of the k nearest that is found, by the exact kernel of rows that are not negative."""
    found = []
    for result, query in zip(results, queries.astype(np.float64), strict=True):
        exact = np.minimum(query, rows).sum(axis=1) / np.maximum(query, rows).sum(axis=1)
        least = np.partition(exact, -_K)[-_K] - 1e-9
        found.append((exact[result["ids"]] >= least).sum() / _K)
    return float(np.mean(found))


def advised(report: Report, client: httpx.Client, letters: Rows) -> None:
    """An index of raw letters that is put with a target."""
    n = len(letters) // 40
    queries, rows = letters[:n], letters[n:]
    client.put("/v1/maps/hashes", json={**_HASHING, "input_dim": rows.shape[1], "s": 512}).raise_for_status()
    client.put("/v1/datasets/letters", content=npy(rows), headers={"Content-Type": NPY}).raise_for_status()
    asked = {"map": "hashes", "keep": "vectors", "target": {"recall": _RECALL, "k": _K, "dataset": "letters"}}
    record = client.put("/v1/indexes/near", json=asked, headers={"Prefer": "wait=30"}).raise_for_status().json()
    rate = upsert(client, "/v1/indexes/near", (rows[i : i + _BATCH] for i in range(0, len(rows), _BATCH)))
    results, milliseconds = searched(client, "/v1/indexes/near", queries)
    share = float(np.mean([one["candidates"] for one in results])) / len(rows)
    found = recall(results, queries, rows)
    told = (
        f"{len(rows):,}",
        f"{n}",
        _called(record),
        f"{found:.3f}",
        f"{share:.1%}",
        f"{milliseconds:.2f}",
        f"{rate:,.0f}",
    )
    heads = "rows", "queries", "taken", f"recall@{_K}", "looked at", "median search, ms", "upserts a second"
    report.table(heads, [told])
    report.at_least("letters: recall of the adviser's choice", found, _RECALL, f"{found:.3f}")
    report.at_most("letters: median search over HTTP", milliseconds, 3, f"{milliseconds:.2f} ms", " ms")
    report.at_least("letters: upserts a second", rate, 5000, f"{rate:,.0f}")


def noisy(letters: Rows, n: int) -> Iterator[Rows]:
    """Batches of n rows in all, each a letter times noise of some hundredths."""
    rng = np.random.default_rng(1)
    for _ in range(0, n, _BATCH):
        some = letters[rng.integers(0, len(letters), _BATCH)]
        yield (some * np.exp(0.03 * rng.standard_normal(some.shape))).astype(np.float32)


def large(report: Report, client: httpx.Client, store: redis.Redis, letters: Rows, n: int) -> None:
    """An index of many vectors, which is deleted in the end."""
    client.put("/v1/maps/many", json={**_HASHING, "input_dim": letters.shape[1], "s": 128}).raise_for_status()
    before = store.info("memory")["used_memory"]
    keys = set(store.scan_iter("*", 1000))
    client.put("/v1/indexes/many", json={"map": "many", **_BANDS}).raise_for_status()
    rate = upsert(client, "/v1/indexes/many", noisy(letters, n))
    taken = store.info("memory")["used_memory"] - before
    _, milliseconds = searched(client, "/v1/indexes/many", letters[:200])
    client.delete("/v1/indexes/many").raise_for_status()
    left = {key for key in set(store.scan_iter("*", 1000)) - keys if b"many" in key}
    report.table(
        ("vectors", "bytes of store", "bytes a vector", "median search, ms", "upserts a second", "keys left"),
        [
            (f"{n:,}", f"{taken:,}", f"{taken / n:.0f}", f"{milliseconds:.2f}", f"{rate:,.0f}", f"{len(left)}"),
        ],
    )
    report.at_most(f"{n:,} vectors: bytes a vector", taken / n, 450, f"{taken / n:.0f}")
    report.at_most(f"{n:,} vectors: median search over HTTP", milliseconds, 8, f"{milliseconds:.2f} ms", " ms")
    report.at_most(f"{n:,} vectors: keys that are left by a deletion", len(left), 0, f"{len(left)}")


def run(report: Report, plan: Plan) -> None:
    """Print the figures."""
    if plan.data is None:
        letters = np.load(_LETTERS)
    else:
        every = np.load(plan.data / "letter.npz")["X"]
        letters = every[np.random.default_rng(0).permutation(len(every))].astype(np.float32)
    letters = letters[: 2000 if plan.tiny else None]
    report.say(
        f"Letters as they are, not negative, over loopback, one search at a time, by httpx. The map has 512 hashes; an "
        f"index that keeps vectors is put with a target of {_RECALL} for the {_K} nearest, and the rest of the letters "
        f"are queries that it does not hold. Then many vectors, letters times small noise, of 128 hashes in "
        f"{_BANDS['bands']} bands, codes alone. Bytes of the store are those that it uses more than before."
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
