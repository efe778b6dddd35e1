"""Gram error of structured orthogonal frequencies beside orthogonal and Monte Carlo ones, by data set and size.

Gaussian kernel, σ the median distance and the mean distance to the tenth nearest neighbour among the rows used, form
cos_sin, float32, relative Frobenius error; mean and standard error over the seeds. `z` is how many standard errors of
the difference the structured maps are above another sampler, below it if negative.

Run: python -m benchmarks.structured_error DIR [--sets letter cpu mnist mnist784] [--s 256 1024] [--seeds 20]

DIR holds letter.npz, cpu.npz and mnist5000_raw.npz, each with an array X of rows. mnist784 are the pixels themselves.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from app.core.maps import made
from app.core.spec import MapSpec
from benchmarks.gram_error import SETS, neighbour_distance

Rows = NDArray[np.float64]

ALL_SETS = SETS | {"mnist784": ("mnist5000_raw.npz", lambda rows: rows / 255)}
SIGMAS: dict[str, Callable[[Rows], float]] = {
    "median": lambda rows: float(np.median(pdist(rows))),
    "tenth": neighbour_distance,
}
SAMPLERS: dict[str, dict[str, str]] = {
    "structured": {"kind": "structured_orthogonal"},
    "independent": {"kind": "structured_orthogonal", "radii": "independent"},
    "orthogonal": {"kind": "orthogonal"},
    "monte_carlo": {"kind": "monte_carlo"},
}


def errors(rows: Rows, sigma: float, s: int, sampler: dict[str, str], seeds: int) -> Rows:
    """Relative Frobenius error of the Gram matrix for each seed."""
    single, found = rows.astype(np.float32), []
    exact = None
    for seed in range(seeds):
        kernel = {"kind": "gaussian", "length_scale": sigma}
        spec = {"input_dim": rows.shape[1], "kernel": kernel, "sampler": sampler, "s": s, "seed": seed}
        feature_map = made(MapSpec.model_validate(spec))
        if exact is None:
            exact = feature_map.exact_gram(rows, rows)
        found.append(np.linalg.norm(feature_map.gram(single, single) - exact) / np.linalg.norm(exact))
    return np.array(found)


def above(one: Rows, other: Rows) -> float:
    """How many standard errors of the difference the mean of one is above that of the other."""
    spread = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / len(one))
    return float((one.mean() - other.mean()) / spread)


def main() -> None:
    """Print means ± standard errors, and how the structured ones compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(ALL_SETS), choices=ALL_SETS)
    parser.add_argument("--s", nargs="+", type=int, default=[256, 1024])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    print("| data | d | σ | s | " + " | ".join(SAMPLERS) + " | z, orthogonal | z, monte_carlo |")
    print("|" + " --- |" * (6 + len(SAMPLERS)))
    for name in options.sets:
        file, prepare = ALL_SETS[name]
        everything = prepare(np.load(options.folder / file)["X"])
        rows = everything[np.random.default_rng(0).permutation(len(everything))[: options.rows]]
        for scale, sigma_of in SIGMAS.items():
            for s in options.s:
                of = {label: errors(rows, sigma_of(rows), s, it, options.seeds) for label, it in SAMPLERS.items()}
                cells = [f"{e.mean():.5f} ± {e.std(ddof=1) / np.sqrt(len(e)):.5f}" for e in of.values()]
                z = [f"{above(of['structured'], of[other]):+.1f}" for other in ("orthogonal", "monte_carlo")]
                print(f"| {name} | {rows.shape[1]} | {scale} | {s} | " + " | ".join(cells + z) + " |", flush=True)


if __name__ == "__main__":
    main()
