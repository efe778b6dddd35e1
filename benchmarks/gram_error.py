"""Relative Frobenius error of the Gram matrix by data set, number of frequencies and sampler, through the service.

Gaussian kernel, σ the mean distance to the tenth nearest neighbour among the rows used, form cos_sin, float32. The
exact Gram matrix is computed here, not by the service.

Run: python -m benchmarks.gram_error DIR [--sets letter cpu mnist] [--s 256 1024 4096] [--seeds 10]

DIR holds letter.npz, cpu.npz and mnist5000_raw.npz, each with an array X of rows.
"""

import argparse
import io
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from service_tests.checks import NPY, npy
from service_tests.running import service

Rows = NDArray[np.float64]

SAMPLERS: dict[str, dict[str, Any]] = {
    "MC": {"kind": "monte_carlo"},
    "MM": {"kind": "moment_matching", "base": {"kind": "monte_carlo"}},
    "Sobol": {"kind": "sobol"},
    "Halton": {"kind": "halton"},
    "Halton plain": {"kind": "halton", "scramble": "none"},
    "antithetic": {"kind": "antithetic"},
    "MM Sobol": {"kind": "moment_matching", "base": {"kind": "sobol"}},
}


def standardised(rows: Rows) -> Rows:
    """Columns of mean 0 and standard deviation 1; constant columns 0."""
    spread = rows.std(axis=0)
    scaled: Rows = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return scaled


def principal(rows: Rows) -> Rows:
    """The first 250 principal components of images from 0 to 255."""
    centred = rows / 255 - (rows / 255).mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    components: Rows = centred @ axes[:250].T
    return components


SETS: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "letter": ("letter.npz", standardised),
    "cpu": ("cpu.npz", standardised),
    "mnist": ("mnist5000_raw.npz", principal),
}


def neighbour_distance(rows: Rows) -> float:
    """Mean distance to the tenth nearest neighbour among the rows."""
    return float(
        np.mean([np.partition(cdist(rows[i : i + 500], rows), 10)[:, 10].mean() for i in range(0, len(rows), 500)])
    )


def loaded(folder: Path, sets: Mapping[str, tuple[str, Callable[[Rows], Rows]]], name: str, n: int) -> Rows:
    """So many rows of a set, as it is prepared; the same each time."""
    file, prepare = sets[name]
    everything = prepare(np.load(folder / file)["X"])
    return everything[np.random.default_rng(0).permutation(len(everything))[:n]]


def errors(client: httpx.Client, rows: Rows, sigma: float, s: int, sampler: dict[str, Any], seeds: int) -> Rows:
    """Relative Frobenius error for each seed."""
    exact = np.exp(-cdist(rows, rows, "sqeuclidean") / (2 * sigma**2))
    body = npy(rows.astype(np.float32))
    found = []
    for seed in range(seeds):
        spec = {
            "input_dim": rows.shape[1],
            "kernel": {"kind": "gaussian", "length_scale": sigma},
            "sampler": sampler,
            "s": s,
            "seed": seed,
        }
        client.put("/v1/maps/gram-error", json=spec).raise_for_status()
        headers = {"Content-Type": NPY}
        answer = client.post("/v1/maps/gram-error/kernel", content=body, headers=headers).raise_for_status()
        client.delete("/v1/maps/gram-error").raise_for_status()
        approximate = np.load(io.BytesIO(answer.content)).astype(np.float64)
        found.append(np.linalg.norm(approximate - exact) / np.linalg.norm(exact))
    return np.array(found)


def main() -> None:
    """Print mean ± standard deviation over the seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--s", nargs="+", type=int, default=[256, 1024, 4096])
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    print("| data | s | " + " | ".join(SAMPLERS) + " |\n|" + " --- |" * (2 + len(SAMPLERS)))
    with tempfile.TemporaryDirectory() as folder, service(Path(folder) / "data", "--log-level", "warning") as running:
        client = httpx.Client(base_url=running.url, timeout=300)
        for name in options.sets:
            for s in options.s:
                rows = loaded(options.folder, SETS, name, 3000 if s <= 1024 else 2000)
                sigma = neighbour_distance(rows)
                cells = []
                for sampler in SAMPLERS.values():
                    found = errors(client, rows, sigma, s, sampler, options.seeds)
                    cells.append(f"{found.mean():.4f} ± {found.std(ddof=1):.4f}")
                print(f"| {name} | {s} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
