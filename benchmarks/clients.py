"""Services in processes of their own, and clients that post to them."""

import asyncio
import http.client
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import psutil
import uvloop
from sklearn.kernel_approximation import RBFSampler

from benchmarks.contender import HELD
from benchmarks.timing import Times
from service_tests.checks import JSON, NPY, npy
from service_tests.running import free_port

LANDMARKS = np.random.default_rng(1).standard_normal((512, 64)).astype(np.float32).tolist()
GAUSSIAN = {"kernel": {"kind": "gaussian", "length_scale": 10.0}, "sampler": {"kind": "monte_carlo"}}
MAPS = {
    "bench": {**GAUSSIAN, "input_dim": 128, "s": 512},
    "large": {**GAUSSIAN, "input_dim": 512, "s": 4096, "form": "phase"},
    "long": {**GAUSSIAN, "input_dim": 8, "s": 1024, "form": "phase"},
    "near": {**GAUSSIAN, "input_dim": 64, "sampler": {"kind": "uploaded_landmarks", "landmarks": LANDMARKS}},
}
_READY_SECONDS = 120


def rows(n: int, d: int) -> np.ndarray:
    """Random rows in float32."""
    return np.random.default_rng(0).standard_normal((n, d)).astype(np.float32)


class Post(NamedTuple):
    """A request."""

    path: str
    body: bytes
    content_type: str = NPY


def transform(name: str, n: int, d: int) -> Post:
    """A request to transform random rows by a map of `MAPS`, as .npy."""
    return Post(f"/v1/maps/{name}/transform", npy(rows(n, d)))


def as_json(path: str, n: int, d: int) -> Post:
    """The same rows as lists of numbers."""
    return Post(path, json.dumps({"vectors": rows(n, d).tolist()}).encode(), JSON)


def _free() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(HELD)}


@contextmanager
def serving(*command: str, ready: str, **environment: str) -> Iterator[tuple[str, psutil.Process]]:
    """The address and the process of a service that a module of Python runs, once `ready` answers 200.

    Args:
        command: module and options; a port is added.
        ready: path to ask.
        environment: variables to set.
    """
    port = str(free_port())
    process = subprocess.Popen([sys.executable, "-m", *command, "--port", port], env=_free() | environment)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            until = time.monotonic() + _READY_SECONDS
            while process.poll() is None and time.monotonic() < until:
                with suppress(httpx.TransportError):
                    if client.get(ready).status_code == 200:
                        break
                time.sleep(0.02)
            else:
                raise RuntimeError(f"{command[0]} did not come up")
        yield f"127.0.0.1:{port}", psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def service(workers: int = 1) -> Iterator[tuple[str, psutil.Process]]:
    """The address and the process of this service, with `MAPS`, in so many processes."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--data-dir", folder, "--job-workers", "0", "--log-level", "warning", "--workers", str(workers)]
        with serving("app", "serve", *options, ready="/health/ready") as (address, process):
            for name, spec in MAPS.items():
                httpx.put(f"http://{address}/v1/maps/{name}", json=spec, timeout=60).raise_for_status()
            yield address, process


@contextmanager
def obvious_service(workers: int = 1) -> Iterator[str]:
    """The address of the service that a pickled RBFSampler makes, of the size of the map "bench"."""
    with _of_sampler("benchmarks.obvious_service:app", "/openapi.json", workers) as address:
        yield address


@contextmanager
def bare_service() -> Iterator[str]:
    """The address of the same behind Starlette alone."""
    with _of_sampler("benchmarks.bare_service:app", "/health/live") as address:
        yield address


@contextmanager
def _of_sampler(app: str, ready: str, workers: int = 1) -> Iterator[str]:
    sampler = RBFSampler(gamma=0.005, n_components=1024, random_state=0).fit(rows(10, 128))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sampler.pickle"
        path.write_bytes(pickle.dumps(sampler))
        options = [app, "--log-level", "warning", "--workers", str(workers)]
        with serving("uvicorn", *options, ready=ready, SAMPLER=str(path)) as (address, _):
            yield address


@contextmanager
def ready_answer(size: int) -> Iterator[str]:
    """The address of a service that answers every request with so many bytes that are there."""
    options = ["benchmarks.ready_answer:app", "--log-level", "warning"]
    with serving("uvicorn", *options, ready="/", ANSWER_BYTES=str(size)) as (address, _):
        yield address


def posting(address: str, post: Post) -> Callable[[], bytes]:
    """A call that posts over a connection of its own, and returns what is answered."""
    line = http.client.HTTPConnection(address)

    def call() -> bytes:
        line.request("POST", post.path, post.body, {"Content-Type": post.content_type})
        answer = line.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(content[:500])
        return content

    return call


class _Line(asyncio.Protocol):
    """A connection that posts one request again and again until a moment, and notes the seconds of each."""

    def __init__(self, request: bytes, until: float, times: list[float], closed: asyncio.Event) -> None:
        self._request, self._until, self._times, self._closed = request, until, times, closed
        self._warm = False

    def connection_made(self, transport: Any) -> None:
        """Begin."""
        self._transport = transport
        self._begin()

    def _begin(self) -> None:
        self._head, self._missing = b"", 0
        self._start = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Note the end of an answer, and begin again."""
        if not self._missing:
            head, end, data = (self._head + data).partition(b"\r\n\r\n")
            if not end:
                self._head = head
                return
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head[:500])
            self._missing = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        self._missing -= len(data)
        if not self._missing:
            if self._warm:
                self._times.append(time.perf_counter() - self._start)
            # The first answer waited until all were connected.
            more, self._warm = not self._warm or time.time() < self._until, True
            if more:
                self._begin()
            else:
                self._transport.close()

    def connection_lost(self, _: object) -> None:
        """End."""
        self._closed.set()


def _client(address: str, post: Post, lines: int, until: float) -> list[float]:
    head = f"POST {post.path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {post.content_type}\r\n"
    request = f"{head}Content-Length: {len(post.body)}\r\n\r\n".encode() + post.body
    host, port = address.split(":")
    times: list[float] = []

    async def run() -> None:
        loop, ends = asyncio.get_running_loop(), [asyncio.Event() for _ in range(lines)]
        for closed in ends:
            await loop.create_connection(partial(_Line, request, until, times, closed), host, int(port))
        for closed in ends:
            await closed.wait()

    uvloop.run(run())
    return times


def answers_a_second(times: Times, lines: int) -> float:
    """What so many connections get that ask again and again."""
    return lines / float(times.values.mean())


def clients(address: str, seconds: float, *each: tuple[Post, int]) -> list[Times]:
    """What processes measure that post side by side, again and again, each over so many connections: seconds."""
    with ProcessPoolExecutor(len(each)) as pool:
        for begun in [pool.submit(time.time) for _ in each]:
            begun.result()
        until = time.time() + seconds
        return [Times(one.result()) for one in [pool.submit(_client, address, post, n, until) for post, n in each]]
