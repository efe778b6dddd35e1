"""What recommendations are worth: the recommended spec's error on rows not seen, against the best of its own table.

Gaussian kernel, σ the mean distance to the tenth nearest neighbour among the 1,000 rows that are measured on, and 1,000
other rows; three seeds. Letter and cpu standardised, MNIST reduced to 250 principal components.

Run: python -m benchmarks.recommendations DIR [--budget 1024]

DIR holds letter.npz, cpu.npz and mnist5000_raw.npz, each with an array X of rows.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.core.kernels.gaussian import Gaussian
from app.core.length_scales import Heuristic, length_scale
from app.core.maps import family_of, opened
from app.core.recommendations.candidates import Wanted
from app.core.recommendations.trials import recommended
from app.core.spec import MapSpec
from benchmarks.data import SETS

ROWS, SEEDS = 1000, 3


def error(spec: MapSpec, rows: NDArray[np.float32], exact: NDArray[np.float64]) -> float:
    """Mean relative Frobenius error over the seeds."""
    found = []
    for seed in range(SEEDS):
        its = spec.model_copy(update={"seed": seed})
        approximate = opened(its, family_of(its.sampler).build(its).arrays, 1).gram(rows, rows)
        found.append(np.linalg.norm(approximate - exact) / np.linalg.norm(exact))
    return float(np.mean(found))


def main() -> None:
    """Print a line for each data set."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", type=int, default=1024)
    options = parser.parse_args()
    print("| data | recommended | its error | held out | best held out of the table | ratio | trials | time |")
    print("|" + " --- |" * 8)
    for name, (file, prepare) in SETS.items():
        everything = prepare(np.load(options.folder / file)["X"])
        chosen = np.random.default_rng(0).permutation(len(everything))
        rows, others = everything[chosen[:ROWS]], everything[chosen[ROWS : 2 * ROWS]].astype(np.float32)
        begun = time.perf_counter()
        scale = length_scale(Heuristic.nearest_neighbor, rows, Gaussian.metric)
        kernel = Gaussian(kind="gaussian", length_scale=scale)
        ranked = recommended(rows.astype(np.float32), kernel, Wanted(options.budget, None), seeds=SEEDS)["ranked"]
        taken = time.perf_counter() - begun
        exact = kernel.gram(others.astype(np.float64), others.astype(np.float64))
        held_out = [error(MapSpec.model_validate_json(json.dumps(trial["spec"])), others, exact) for trial in ranked]
        best = ranked[0]
        sampler = best["spec"]["sampler"]
        label = f"{sampler['kind']} over {sampler['base']['kind']}" if sampler.get("base") else sampler["kind"]
        print(
            f"| {name} | {label}, {best['n_output']} columns | {best['error_mean']:.4f} | {held_out[0]:.4f} | "
            f"{min(held_out):.4f} | {held_out[0] / min(held_out):.3f} | {len(ranked)} | {taken:.1f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
