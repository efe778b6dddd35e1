"""Table 2 of the quasi-Monte Carlo paper: normalised box discrepancy of learned sets, and the time they take.

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

HALTON = {"kind": "halton", "scramble": "reverse_radix"}
# By s and the part of the box: Halton, global, greedy, weighted.
PAPER = {
    (100, 1.0): (3.41e-3, 1.29e-6, 3.02e-4, 7.84e-5),
    (300, 1.0): (8.09e-4, 5.14e-6, 5.85e-5, 1.45e-6),
    (500, 1.0): (2.39e-4, 2.83e-6, 1.86e-5, 3.39e-7),
    (100, 0.25): (9.44e-5, 5.57e-8, 2.62e-5, 1.67e-8),
    (300, 0.25): (2.57e-5, 1.06e-7, 3.08e-6, 2.93e-9),
}
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
        over = {"base": HALTON, "box": self.box.tolist(), "box_scale": box_scale, **sampler}
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
    for (s, box_scale), paper in PAPER.items():
        made = [learning.learned(sampler, s, box_scale) for sampler in SAMPLERS]
        ends = " | ".join(f"{report['objective_end']:.2e} ({seconds:.1f} s)" for report, seconds in made)
        theirs = ", ".join(f"{value:.2e}" for value in paper)
        print(f"| {s} | {box_scale:g}·b | {made[0][0]['objective_start']:.2e} | {ends} | {theirs} |", flush=True)
    report, seconds = learning.learned({"kind": "weighted"}, 2000, 1.0)
    print(f"\nweighted, s = 2000: {report['objective_end']:.2e}, {seconds:.1f} s")
    print(f"value and gradient, s = 500: {1000 * learning.value_and_gradient(500):.1f} ms")


if __name__ == "__main__":
    main()
