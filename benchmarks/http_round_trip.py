"""What HTTP adds: to batches and single vectors, beside large requests, with one process and two, and to large answers.

Run: python -m benchmarks.http_round_trip [--app DIR]

`--app` runs the service of another checkout, to compare with. Beside what is measured, `plain` is the same features by
NumPy, in the process of the benchmark.
"""

import argparse
import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import uvloop

from service_tests.checks import NPY, npy
from service_tests.running import free_port

GAUSSIAN = {"kernel": {"kind": "gaussian", "length_scale": 10.0}, "sampler": {"kind": "monte_carlo"}}
MAPS = {
    "bench": {**GAUSSIAN, "input_dim": 128, "s": 512},
    "large": {**GAUSSIAN, "input_dim": 512, "s": 4096, "form": "phase"},
    "long": {**GAUSSIAN, "input_dim": 8, "s": 1024, "form": "phase"},
}
SECONDS = 4


def rows(n: int, d: int) -> np.ndarray:
    """Random rows in float32."""
    return np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)


@contextmanager
def service(app: Path, *options: str) -> Iterator[tuple[str, psutil.Process]]:
    """The address and the process of a service of that checkout, with the maps."""
    port = str(free_port())
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "app", "serve", "--port", port, "--data-dir", folder, "--job-workers", "0"]
        process = subprocess.Popen([*command, "--log-level", "warning", *options], cwd=app)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                for _ in range(600):
                    with suppress(httpx.TransportError):
                        if client.get("/health/ready").status_code == 200:
                            break
                    time.sleep(0.1)
                for name, spec in MAPS.items():
                    client.put(f"/v1/maps/{name}", json=spec).raise_for_status()
            yield f"127.0.0.1:{port}", psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(60)


def posting(address: str, name: str, body: bytes) -> Callable[[], object]:
    """A call that transforms a body over a connection of its own."""
    line = http.client.HTTPConnection(address)

    def post() -> object:
        line.request("POST", f"/v1/maps/{name}/transform", body, {"Content-Type": NPY})
        answer = line.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(content[:500])
        return content

    return post


def taken(call: Callable[[], object]) -> float:
    """Milliseconds of a call."""
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def interleaved(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, np.ndarray]:
    """Milliseconds of each call, sorted; they take turns, and the first three times do not count."""
    times = [{name: taken(call) for name, call in calls.items()} for _ in range(repeats + 3)][3:]
    return {name: np.sort([one[name] for one in times]) for name in calls}


def told(label: str, times: np.ndarray, more: str = "") -> None:
    """Print a median with its quartiles, and the 99th percentile."""
    low, middle, high, late = np.percentile(times, [25, 50, 75, 99])
    print(f"{label:44} {middle:8.2f} ms  ({low:.2f} to {high:.2f}; 99 %: {late:.2f})  {more}", flush=True)


def round_trips(address: str) -> None:
    """One connection, nothing beside it."""
    many, one = rows(1000, 128), rows(1, 128)
    frequencies = np.ascontiguousarray(rows(512, 128).T)

    def plain() -> np.ndarray:
        phases = many @ frequencies
        return np.concatenate([np.cos(phases), np.sin(phases)], axis=1) * np.float32(512**-0.5)

    line = http.client.HTTPConnection(address)

    def empty() -> None:
        line.request("GET", "/health/live")
        line.getresponse().read()

    with httpx.Client(base_url=f"http://{address}") as client:

        def by_httpx(body: bytes, content_type: str) -> Callable[[], object]:
            headers = {"Content-Type": content_type}
            return lambda: client.post("/v1/maps/bench/transform", content=body, headers=headers).raise_for_status()

        as_json = json.dumps({"vectors": many.tolist()}).encode()
        batches = {
            "1,000 rows, plain": plain,
            "1,000 rows, .npy by http.client": posting(address, "bench", npy(many)),
            "1,000 rows, .npy by httpx": by_httpx(npy(many), NPY),
        }
        times = interleaved(batches, 100)
        for label, of in times.items():
            told(label, of, f"{np.median(of) / np.median(times['1,000 rows, plain']):.2f} x plain")
        batch = by_httpx(as_json, "application/json")
        told("1,000 rows, JSON by httpx", np.sort([taken(batch) for _ in range(10)]))
        singles = {
            "an empty route, http.client": empty,
            "one vector, .npy by http.client": posting(address, "bench", npy(one)),
            "one vector, .npy by httpx": by_httpx(npy(one), NPY),
        }
        for label, of in interleaved(singles, 1000).items():
            told(label, of)


class Line(asyncio.Protocol):
    """A connection that posts one request again and again until a moment, and notes the milliseconds of each."""

    def __init__(self, request: bytes, until: float, times: list[float], closed: asyncio.Event) -> None:
        self._request, self._until, self._times, self._closed = request, until, times, closed

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        self._transport = transport
        self._begin()

    def _begin(self) -> None:
        self._missing: int | None = None
        self._start = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Note the end of an answer, and begin again."""
        if self._missing is None:
            head = data[: data.index(b"\r\n\r\n") + 4].lower()
            if not head.startswith(b"http/1.1 200"):
                raise RuntimeError(data[:500])
            self._missing = len(head) + int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        self._missing -= len(data)
        if not self._missing:
            now = time.time()
            if now > self._until - SECONDS:  # before, not all are connected
                self._times.append(1000 * (time.perf_counter() - self._start))
            if now < self._until:
                self._begin()
            else:
                self._transport.close()

    def connection_lost(self, _: object) -> None:
        """End."""
        self._closed.set()


def client(address: str, name: str, body: bytes, until: float, lines: int = 1) -> list[float]:
    """Post one body over some connections, each again and again, until a moment; milliseconds of each request."""
    head = f"POST /v1/maps/{name}/transform HTTP/1.1\r\nHost: {address}\r\nContent-Type: {NPY}\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    host, port = address.split(":")
    times: list[float] = []

    async def post() -> None:
        loop, ends = asyncio.get_running_loop(), [asyncio.Event() for _ in range(lines)]
        for closed in ends:
            await loop.create_connection(partial(Line, request, until, times, closed), host, int(port))
        for closed in ends:
            await closed.wait()

    uvloop.run(post())
    return times


def clients(address: str, *each: tuple[str, bytes, int]) -> list[np.ndarray]:
    """What clients in processes of their own measure who post side by side: a map, a body, and their connections."""
    with ProcessPoolExecutor(len(each)) as pool:
        until = time.time() + SECONDS + 1
        found = [pool.submit(client, address, name, body, until, lines) for name, body, lines in each]
        return [np.sort(one.result()) for one in found]


def beside_large_ones(address: str) -> None:
    """One small request at a time while others transform 2,000 rows of 512 to 4,096 columns."""
    small, large = ("bench", npy(rows(1, 128)), 1), ("large", npy(rows(2000, 512)), 1)
    for others in (0, 1, 2, 4):
        times, *of_large = clients(address, small, *[large] * others)
        told(f"one vector, beside {others} clients of large requests", times, f"{sum(map(len, of_large))} large")


def at_once(address: str) -> None:
    """Single vectors of many clients, on a small map and a larger one, and batches of four clients."""
    for name, d in (("bench", 128), ("large", 512)):
        for lines in (1, 8, 64):
            (times,) = clients(address, (name, npy(rows(1, d)), lines))
            told(f"one vector, map {name}, {lines} clients", times, f"{1000 * lines / times.mean():.0f} a second")
    times = np.concatenate(clients(address, *[("bench", npy(rows(1000, 128)), 1)] * 4))
    told("1,000 rows, map bench, 4 clients", times, f"{4000 / times.mean():.0f} a second")


def large_answer(address: str, process: psutil.Process) -> None:
    """The time and the most memory of an answer of a gigabyte."""
    body = npy(rows(250_000, 8))
    line = http.client.HTTPConnection(address)
    idle = most = process.memory_info().rss
    start, length = time.perf_counter(), 0
    line.request("POST", "/v1/maps/long/transform", body, {"Content-Type": NPY})
    answer = line.getresponse()
    while piece := answer.read(1 << 20):
        length += len(piece)
        most = max(most, process.memory_info().rss)
    seconds = time.perf_counter() - start
    memory = (most - idle - len(body)) / 2**20
    print(
        f"status {answer.status}, {length / 1e9:.2f} GB in {seconds:.2f} s, {memory:.0f} MB of memory beside the rows"
    )


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--app", type=Path, default=Path(__file__).parent.parent)
    app: Any = parser.parse_args().app
    os.environ.setdefault("OPENBLAS_NUM_THREADS", str(os.cpu_count()))
    for workers in (1, 2):
        print(f"{workers} process{'es' * (workers > 1)}")
        with service(app, "--workers", str(workers)) as (address, process):
            if workers == 1:
                round_trips(address)
                beside_large_ones(address)
            at_once(address)
            if workers == 1:
                large_answer(address, process)


if __name__ == "__main__":
    main()
