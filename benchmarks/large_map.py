"""A 200 MB map (s = 65,536, d = 784, float32): created, used, and used again after a restart, while others are served.

Run: python -m benchmarks.large_map
"""

import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from benchmarks.timing import Beside
from service_tests.checks import NPY, npy
from service_tests.running import start, stop

HEADERS = {"Content-Type": NPY}
SMALL = {"input_dim": 16, "kernel": {"kind": "gaussian", "length_scale": 5.0}, "sampler": {"kind": "sobol"}, "s": 256}
LARGE = {"input_dim": 784, "kernel": {"kind": "gaussian", "length_scale": 10.0}, "s": 65536, "seed": 1}


class Bystander(Beside):
    """A client that keeps transforming one vector with a small map, and notes how long each answer takes."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.milliseconds: list[float] = []

    def _run(self) -> None:
        body = npy(np.ones((1, 16), np.float32))
        with httpx.Client(base_url=self._url) as client:
            while not self._stop.is_set():
                begun = time.perf_counter()
                client.post("/v1/maps/small/transform", content=body, headers=HEADERS).raise_for_status()
                self.milliseconds.append(1000 * (time.perf_counter() - begun))
                time.sleep(0.005)

    def report(self) -> str:
        """Median and worst answer."""
        times = np.array(self.milliseconds)
        return f"bystander: {len(times)} answers, median {np.median(times):.1f} ms, worst {times.max():.0f} ms"


def main() -> None:
    """Print what each step took, for each sampler."""
    rows = npy(np.random.default_rng(0).standard_normal((20, 784)).astype(np.float32))
    samplers = {
        "monte_carlo": {"kind": "monte_carlo"},
        "halton": {"kind": "halton"},
        "sobol": {"kind": "sobol"},
        "moment_matching": {"kind": "moment_matching", "base": {"kind": "sobol"}},
    }
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        running = start(data_dir, "--log-level", "warning")
        before = {}
        with httpx.Client(base_url=running.url, timeout=120) as client:
            client.put("/v1/maps/small", json=SMALL).raise_for_status()
            for name, sampler in samplers.items():
                with Bystander(running.url) as bystander:
                    begun = time.perf_counter()
                    record = client.put(f"/v1/maps/{name}", json={**LARGE, "sampler": sampler}).raise_for_status()
                    seconds = time.perf_counter() - begun
                print(f"{name}: {record.json()['bytes'] / 1e6:.0f} MB created in {seconds:.1f} s; {bystander.report()}")
                with Bystander(running.url) as bystander:
                    begun = time.perf_counter()
                    answer = client.post(f"/v1/maps/{name}/transform", content=rows, headers=HEADERS).raise_for_status()
                    before[name] = answer.content
                    seconds = time.perf_counter() - begun
                print(f"{name}: read and first transform in {seconds:.1f} s; {bystander.report()}")
        stop(running)
        running = start(data_dir, "--log-level", "warning")
        with httpx.Client(base_url=running.url, timeout=120) as client:
            for name in samplers:
                answer = client.post(f"/v1/maps/{name}/transform", content=rows, headers=HEADERS).raise_for_status()
                print(f"{name}: bit-identical after a restart: {answer.content == before[name]}")
        stop(running)


if __name__ == "__main__":
    main()
