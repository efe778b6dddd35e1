"""What it takes to learn the sets of table 2 of the quasi-Monte Carlo paper, in this process: discrepancies and times.

Of an archive with the rows X of the cpu data as they come: the box b is the ranges of the columns, σ is 0.6 times the
widest (the paper does not tell its own). Base: reverse-radix Halton. The paper's values are for comparison.

Run: python -m benchmarks.adaptive_sequences ARCHIVE.npz [THREADS]
"""

import json
import sys
import time
from typing import Any

import numpy as np

from app.core.building import Building
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.kernels.gaussian import Gaussian
from app.core.maps import FourierMap
from app.core.spec import MapSpec
from benchmarks.papers.gram import SEQUENCES
from benchmarks.papers.printed import DISCREPANCIES

SAMPLERS: tuple[dict[str, Any], ...] = (
    {"kind": "global_adaptive", "iterations": 200},
    {"kind": "greedy_adaptive", "starts": 1},
    {"kind": "greedy_adaptive", "starts": 3},
    {"kind": "weighted"},
)


class Learning:
    """Sets for the rows of one archive.

    Args:
        path: of the archive.
        threads: to learn with.
    """

    def __init__(self, path: str, threads: int) -> None:
        rows = np.load(path)["X"]
        self.box = np.ptp(rows, axis=0)
        self.sigma = 0.6 * float(self.box.max())
        self.threads = threads

    def learned(self, sampler: dict[str, Any], s: int, box_scale: float) -> tuple[dict[str, float], float]:
        """The report of a build, and its seconds."""
        over = {"base": SEQUENCES["Halton"], "box": self.box.tolist(), "box_scale": box_scale, **sampler}
        kernel = {"kind": "gaussian", "length_scale": self.sigma}
        members = {"input_dim": len(self.box), "kernel": kernel, "sampler": over, "s": s, "dtype": "float64"}
        spec = MapSpec.model_validate_json(json.dumps(members))
        begun = time.perf_counter()
        report = FourierMap.build(spec, Building(self.threads)).report
        return report or {}, time.perf_counter() - begun

    def value_and_gradient(self, s: int) -> float:
        """Seconds of one evaluation over the whole box."""
        kernel = Gaussian(kind="gaussian", length_scale=self.sigma)
        measure = BoxDiscrepancy(kernel, self.box, self.threads)
        frequencies = np.random.default_rng(0).normal(size=(s, len(self.box))) / self.sigma
        measure.value_and_gradient(frequencies)
        begun = time.perf_counter()
        for _ in range(20):
            measure.value_and_gradient(frequencies)
        return (time.perf_counter() - begun) / 20


def main() -> None:
    """Print table and times."""
    learning = Learning(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    learning.learned({"kind": "weighted"}, 20, 1.0)  # compiles
    print("| s | box | Halton | global | greedy, one start | greedy | weighted | the paper's |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for (s, box_scale), paper in DISCREPANCIES.items():
        made = [learning.learned(sampler, s, box_scale) for sampler in SAMPLERS]
        ends = " | ".join(f"{report['objective_end']:.2e} ({seconds:.1f} s)" for report, seconds in made)
        theirs = ", ".join(f"{value:.2e}" for value in paper)
        print(f"| {s} | {box_scale:g}·b | {made[0][0]['objective_start']:.2e} | {ends} | {theirs} |", flush=True)
    report, seconds = learning.learned({"kind": "weighted"}, 2000, 1.0)
    print(f"\nweighted, s = 2000: {report['objective_end']:.2e}, {seconds:.1f} s")
    print(f"value and gradient, s = 500: {1000 * learning.value_and_gradient(500):.1f} ms")


if __name__ == "__main__":
    main()
