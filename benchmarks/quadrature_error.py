"""Figure 1 of the quadrature paper: greatest kernel error against the diameter of the data.

Gaussian kernel with σ = 1, d = 25; about 1,000 frequencies (the sparse grid of level 2 has 1,351, polynomial exactness
of degree 2 needs 351). The error is the greatest over 10⁵ points of the ball of each diameter.

Run: python -m benchmarks.quadrature_error [PICTURE]
"""

import json
import sys
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from app.core.maps import FourierMap
from app.core.spec import MapSpec

D = 25
DIAMETERS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
SAMPLERS: dict[str, dict[str, Any]] = {
    "Monte Carlo (1000)": {"sampler": {"kind": "monte_carlo"}, "s": 1000},
    "scrambled Sobol' (1024)": {"sampler": {"kind": "sobol"}, "s": 1024},
    "moment matching (1000)": {"sampler": {"kind": "moment_matching"}, "s": 1000},
    "subsampled grid (1000)": {"sampler": {"kind": "subsampled_grid", "points_per_dim": 5}, "s": 1000},
    "polynomially exact (351)": {"sampler": {"kind": "polynomially_exact", "degree": 2}},
    "sparse grid (1351)": {"sampler": {"kind": "sparse_grid", "level": 2}},
}


def greatest_errors(members: dict[str, Any], lags: NDArray[np.float64]) -> list[float]:
    """Greatest error over the lags of the unit ball, stretched to each diameter."""
    document = {"input_dim": D, "kernel": {"kind": "gaussian", "length_scale": 1.0}, "dtype": "float64", **members}
    spec = MapSpec.model_validate_json(json.dumps(document))
    arrays = FourierMap.build(spec).arrays
    errors = np.zeros(len(DIAMETERS))
    for part in np.array_split(lags, 100):
        projected = part @ arrays["frequencies"].T
        squares = np.sum(part**2, axis=1)
        for i, diameter in enumerate(DIAMETERS):
            approximate = np.cos(diameter * projected) @ arrays["weights"]
            errors[i] = max(errors[i], np.abs(approximate - np.exp(-(diameter**2) * squares / 2)).max())
    return list(errors)


def draw(table: dict[str, list[float]], path: str) -> None:
    """The curves, on logarithmic axes."""
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    for name, errors in table.items():
        axes.loglog(DIAMETERS, errors, marker="o", label=name)
    axes.set(xlabel="greatest |δ|/σ", ylabel="greatest error of the kernel", title=f"d = {D}, Gaussian kernel")
    axes.grid(which="both", alpha=0.3)
    axes.legend()
    figure.savefig(path)


def main() -> None:
    """Print the table, and draw it if a path is given."""
    rng = np.random.default_rng(0)
    lags = rng.standard_normal((100_000, D))
    lags *= rng.random((len(lags), 1)) ** (1 / D) / np.linalg.norm(lags, axis=1, keepdims=True)
    print("| sampler | " + " | ".join(f"M = {diameter}" for diameter in DIAMETERS) + " |")
    print("|" + " --- |" * (1 + len(DIAMETERS)))
    table = {}
    for name, members in SAMPLERS.items():
        table[name] = greatest_errors(members, lags)
        print(f"| {name} | " + " | ".join(f"{error:.2g}" for error in table[name]) + " |", flush=True)
    if len(sys.argv) > 1:
        draw(table, sys.argv[1])


if __name__ == "__main__":
    main()
