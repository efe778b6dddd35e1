"""Gram error of structured orthogonal frequencies beside orthogonal and Monte Carlo ones, by data set and size.

Gaussian kernel, σ the median distance and the mean distance to the tenth nearest neighbour among the rows used, form
cos_sin, float32, relative Frobenius error; mean and standard error over the seeds. `z` is how many standard errors of
the difference the structured maps are above another sampler, below it if negative.
mnist784 are the pixels themselves.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from app.core.maps import make_map
from app.core.spec import MapSpec
from benchmarks.data import SETS, loaded, neighbour_distance
from benchmarks.timing import Plan, Report

Rows = NDArray[np.float64]

TITLE = "Structured maps"
SIZES, SEEDS = (256, 1024), 20
# By the other sampler: the most standard errors that structured maps may be above it.
AT_MOST = {"orthogonal": 2, "monte_carlo": -3}
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
        feature_map = make_map(MapSpec.model_validate(spec))
        if exact is None:
            exact = feature_map.exact_gram(rows, rows)
        found.append(np.linalg.norm(feature_map.gram(single, single) - exact) / np.linalg.norm(exact))
    return np.array(found)


def above(one: Rows, other: Rows) -> float:
    """How many standard errors of the difference the mean of one is above that of the other."""
    spread = np.sqrt((one.var(ddof=1) + other.var(ddof=1)) / len(one))
    return float((one.mean() - other.mean()) / spread)


def run(report: Report, plan: Plan) -> None:
    """Write means ± standard errors, and how the structured ones compare."""
    if plan.data is None:
        report.say("Left out: it needs `--data`.")
        return
    n, sizes, seeds = (50, (64,), 2) if plan.tiny else (1000, SIZES, SEEDS)
    report.say(
        f"Relative Frobenius error of the Gram matrix of {n:,} rows, {seeds} seeds, mean ± standard error; σ the "
        "median distance, or the mean distance to the tenth nearest neighbour. `z` is how many standard errors of the "
        "difference structured maps are above the other sampler. mnist784 with s = 256 is the case of fewer "
        "frequencies than a padded block has."
    )
    table = []
    for name in ALL_SETS:
        rows = loaded(plan.data, ALL_SETS, name, n)
        for s in sizes:
            most = dict.fromkeys(AT_MOST, -np.inf)
            for scale, sigma_of in SIGMAS.items():
                of = {label: errors(rows, sigma_of(rows), s, it, seeds) for label, it in SAMPLERS.items()}
                cells = [f"{e.mean():.5f} ± {e.std(ddof=1) / np.sqrt(len(e)):.5f}" for e in of.values()]
                z = {other: above(of["structured"], of[other]) for other in AT_MOST}
                most = {other: max(most[other], z[other]) for other in AT_MOST}
                found = [name, str(rows.shape[1]), scale, str(s), *cells, *(f"{one:+.1f}" for one in z.values())]
                table.append(found)
            for other, limit in AT_MOST.items():
                figure = f"Gram error on {name}, s = {s:,}: structured above {other}, in standard errors"
                report.at_most(figure, most[other], limit, f"{most[other]:+.1f}")
    report.table(("data", "d", "σ", "s", *SAMPLERS, *(f"z, {other}" for other in AT_MOST)), table)
