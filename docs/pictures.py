"""The pictures of the documentation, drawn by a service about the letters of `examples/` at each build."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import create_server
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx

ROOT = Path(__file__).parent.parent
PATIENCE_SECONDS = 600
LETTERS = "letters"
_GAUSSIAN = {"kind": "gaussian", "length_scale": 5.0}
MAPS: Mapping[str, Mapping[str, Any]] = {
    LETTERS: {"input_dim": 16, "s": 512, "seed": 7, "kernel": _GAUSSIAN, "sampler": {"kind": "halton"}},
    "letters-gmm": {"input_dim": 16, "s": 512, "seed": 7, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}},
}


class Picture(NamedTuple):
    """What is asked for a picture."""

    path: str
    body: Mapping[str, Any]


PICTURES: Mapping[str, Picture] = {
    "gram": Picture(f"/v1/maps/{LETTERS}/diagnostics/gram", {"dataset": LETTERS, "rows": 1000}),
    "box-discrepancy": Picture(
        f"/v1/maps/{LETTERS}/diagnostics/box-discrepancy",
        {"dataset": LETTERS, "box_scales": [1, 0.5, 0.25, 0.125, 0.0625]},
    ),
    "collisions": Picture(
        "/v1/maps/letters-gmm/diagnostics/collisions", {"dataset": LETTERS, "rows": 500, "bits": 4, "gamma": 2}
    ),
    "variance": Picture(
        "/v1/maps/letters-gmm/diagnostics/variance", {"correlations": [i / 20 for i in range(20)], "gamma": 2}
    ),
    "recommendations": Picture(
        "/v1/recommendations", {"dataset": LETTERS, "rows": 500, "kernel": _GAUSSIAN, "budget": 512, "seeds": 3}
    ),
    "advice": Picture("/v1/indexes/advice", {"map": "letters-gmm", "dataset": LETTERS}),
}


def draw() -> dict[str, str]:
    """The pictures by name, as a service draws them that is started here."""
    with _service() as http:
        letters = (ROOT / "examples" / "letters.npy").read_bytes()
        _send(http, "PUT", f"/v1/datasets/{LETTERS}", content=letters, headers={"Content-Type": "application/x-npy"})
        for name, spec in MAPS.items():
            _send(http, "PUT", f"/v1/maps/{name}", json=spec)
        headers = {"Accept": "image/svg+xml"}
        return {
            name: _send(http, "POST", asked.path, json=dict(asked.body), headers=headers)
            for name, asked in PICTURES.items()
        }


def _send(http: httpx.Client, method: str, path: str, **options: Any) -> str:
    answer = http.request(method, path, **options)
    if answer.status_code not in (httpx.codes.OK, httpx.codes.CREATED):
        raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:500]}")
    return answer.text


@contextmanager
def _service() -> Iterator[httpx.Client]:
    """A client of a service that runs for the length of a with block."""
    with create_server(("127.0.0.1", 0)) as line:
        port = line.getsockname()[1]
    with (
        TemporaryDirectory() as data_dir,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS) as http,
    ):
        options = ("--port", str(port), "--data-dir", data_dir, "--max-request-seconds", str(PATIENCE_SECONDS))
        command = [sys.executable, "-m", "app", "serve", *options]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
        try:
            end = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < end and process.poll() is None:
                with suppress(httpx.TransportError):
                    if http.get("/health/ready").is_success:
                        break
                time.sleep(0.2)
            yield http
        finally:
            process.terminate()
            process.wait()
