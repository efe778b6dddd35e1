"""What HTTP adds to a transform: 1,000 vectors of 128 numbers to 1,024 float32 features, and one vector.

Run: python -m benchmarks.http_round_trip
"""

import http.client
import io
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import httpx
import numpy as np

from app.core.maps import FourierMap
from app.core.spec import MapSpec
from service_tests.running import service

SPEC = {
    "input_dim": 128,
    "kernel": {"kind": "gaussian", "length_scale": 10.0},
    "sampler": {"kind": "sobol"},
    "s": 512,
    "seed": 1,
}
NPY = {"Content-Type": "application/x-npy"}


def milliseconds(work: Callable[[], object], repeats: int) -> float:
    """Median time of a call, after three that do not count."""
    times = []
    for i in range(repeats + 3):
        start = time.perf_counter()
        work()
        if i >= 3:
            times.append(1000 * (time.perf_counter() - start))
    return median(times)


def npy(rows: np.ndarray) -> bytes:
    """The rows as a .npy body."""
    body = io.BytesIO()
    np.save(body, rows)
    return body.getvalue()


def main() -> None:
    """Print the table."""
    rows = np.random.default_rng(0).standard_normal((1000, 128)).astype(np.float32)
    spec = MapSpec.model_validate_json(json.dumps(SPEC))
    feature_map = FourierMap(spec, FourierMap.build(spec).arrays)
    many, one, as_json = npy(rows), npy(rows[:1]), json.dumps({"vectors": rows.tolist()}).encode()
    with (
        tempfile.TemporaryDirectory() as folder,
        service(Path(folder) / "data", "--log-level", "warning") as running,
        httpx.Client(base_url=running.url) as client,
    ):
        client.put("/v1/maps/bench", json=SPEC).raise_for_status()
        plain = http.client.HTTPConnection(running.url.removeprefix("http://"))

        def by_httpx(body: bytes, headers: dict[str, str]) -> None:
            client.post("/v1/maps/bench/transform", content=body, headers=headers).raise_for_status()

        def by_http_client(body: bytes) -> None:
            plain.request("POST", "/v1/maps/bench/transform", body, NPY)
            plain.getresponse().read()

        inside = milliseconds(lambda: feature_map.transform(rows), 50)
        for label, work, repeats in (
            (".npy, http.client", lambda: by_http_client(many), 50),
            (".npy, httpx", lambda: by_httpx(many, NPY), 50),
            ("JSON, httpx", lambda: by_httpx(as_json, {"Content-Type": "application/json"}), 10),
        ):
            taken = milliseconds(work, repeats)
            print(f"1000 vectors, {label:18} {taken:8.2f} ms, {taken / inside:5.2f} x the {inside:.2f} ms in process")
        print(f"one vector, .npy, http.client    {milliseconds(lambda: by_http_client(one), 500):8.3f} ms")
        print(f"one vector, .npy, httpx          {milliseconds(lambda: by_httpx(one, NPY), 500):8.3f} ms")


if __name__ == "__main__":
    main()
