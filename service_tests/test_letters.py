"""The samplers on real rows: do the better ones pay?"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from app.core.maps import FourierMap
from app.core.spec import MapSpec

SEEDS = range(10)


@cache
def letters() -> tuple[NDArray[np.float64], float]:
    """A thousand standardised letters, and the mean distance to the tenth nearest neighbour among them."""
    rows = np.load(Path(__file__).parents[1] / "examples" / "letters.npy")[:1000].astype(np.float64)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return rows, float(np.sort(cdist(rows, rows), axis=1)[:, 10].mean())


def errors(sampler: dict[str, Any]) -> NDArray[np.float64]:
    """Relative Frobenius error of the Gram matrix at s = 1024 for each seed, against an exact one made here."""
    rows, sigma = letters()
    exact = np.exp(-cdist(rows, rows, "sqeuclidean") / (2 * sigma**2))
    found = []
    for seed in SEEDS:
        document = {
            "input_dim": 16,
            "kernel": {"kind": "gaussian", "length_scale": sigma},
            "sampler": sampler,
            "s": 1024,
            "seed": seed,
            "dtype": "float64",
        }
        spec = MapSpec.model_validate_json(json.dumps(document))
        approximate = FourierMap(spec, FourierMap.build(spec).arrays).gram(rows, rows)
        found.append(np.linalg.norm(approximate - exact) / np.linalg.norm(exact))
    return np.array(found)


@pytest.mark.nightly
def test_sobol_and_moment_matching_beat_monte_carlo_by_more_than_three_standard_errors() -> None:
    plain = errors({"kind": "monte_carlo"})
    for sampler in ({"kind": "sobol"}, {"kind": "moment_matching", "base": {"kind": "monte_carlo"}}):
        better = errors(sampler)
        # The standard error of a difference of two means over ten seeds.
        standard_error = np.sqrt((plain.var(ddof=1) + better.var(ddof=1)) / len(SEEDS))
        assert plain.mean() - better.mean() > 3 * standard_error
