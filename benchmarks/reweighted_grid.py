"""Reweighted grid on images: RMS kernel error on rows that were not fitted, against random Fourier features.

Of an archive with rows X of 784 grey levels from 0 to 255: divided by 255, reduced to their 40 principal coordinates;
Gaussian kernel, σ the mean distance of a row to its tenth nearest neighbour. Fitted on all pairs of 500 rows, judged on
all pairs of 1,500 others, and on these with each row beside itself (the Frobenius error of the Gram matrix).

Run: python -m benchmarks.reweighted_grid ARCHIVE.npz
"""

import json
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from app.core.building import Building
from app.core.maps import FourierMap
from app.core.spec import MapSpec

Rows = NDArray[np.float64]
DIMENSIONS, FITTED, JUDGED, SEEDS = 40, 500, 1500, 10


def reduced(rows: Rows) -> Rows:
    """Principal coordinates."""
    rows = rows - rows.mean(axis=0)
    coordinates: Rows = rows @ np.linalg.svd(rows, full_matrices=False)[2][:DIMENSIONS].T
    return coordinates


def errors(sampler: dict[str, Any], s: int, seed: int, sigma: float, fit: Rows, judged: Rows) -> tuple[float, float]:
    """RMS error over pairs of different rows, and relative Frobenius error of the Gram matrix."""
    members = {"input_dim": DIMENSIONS, "kernel": {"kind": "gaussian", "length_scale": sigma}, "dtype": "float64"}
    spec = MapSpec.model_validate_json(json.dumps({**members, "sampler": sampler, "s": s, "seed": seed}))
    made = FourierMap(spec, FourierMap.build(spec, Building(rows=lambda *_: fit)).arrays)
    exact = made.exact_gram(judged, judged)
    error = made.gram(judged, judged) - exact
    others = error[np.triu_indices(len(judged), 1)]
    return float(np.sqrt(np.mean(others**2))), float(np.linalg.norm(error) / np.linalg.norm(exact))


def main() -> None:
    """Print the table: means over seeds, and the ratio."""
    rows = reduced(np.load(sys.argv[1])["X"] / 255)
    sigma = float(np.sort(cdist(rows, rows), axis=1)[:, 10].mean())
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    fit, judged = rows[:FITTED], rows[FITTED : FITTED + JUDGED]
    grid = {"kind": "reweighted_grid", "dataset": "fit", "points_per_dim": 5}
    print("| s | sampler | RMS error on other rows | ratio | relative Gram error | seconds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for s in (250, 500):
        base = None
        for sampler in ({"kind": "monte_carlo"}, grid):
            begun = time.perf_counter()
            found = np.array([errors(sampler, s, seed, sigma, fit, judged) for seed in range(SEEDS)])
            seconds = (time.perf_counter() - begun) / SEEDS
            rms, gram = found.mean(axis=0)
            base = base or rms
            print(f"| {s} | {sampler['kind']} | {rms:.4f} ± {found[:, 0].std(ddof=1) / SEEDS**0.5:.4f} ", end="")
            print(f"| {rms / base:.3f} | {gram:.3f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
