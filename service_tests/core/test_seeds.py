"""Maps of one seed share their random numbers, and so err alike; maps of different seeds do not."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.maps import made
from app.core.spec import MapSpec

SEEDS = 200
RNG = np.random.default_rng(5)
X = RNG.normal(size=(1, 8))
Y = X + 0.45 * RNG.normal(size=(1, 8))
SPEC: dict[str, Any] = {
    "input_dim": 8,
    "kernel": {"kind": "gaussian", "length_scale": 1.0},
    "sampler": {"kind": "monte_carlo"},
    "s": 64,
    "dtype": "float64",
}


def errors(first_seed: int = 0, **members: Any) -> NDArray[np.float64]:
    """The errors of maps of so many seeds at one pair of rows."""
    maps = (made(MapSpec.model_validate(SPEC | members | {"seed": first_seed + k})) for k in range(SEEDS))
    return np.array([its_map.gram(X, Y)[0, 0] - its_map.exact_gram(X, Y)[0, 0] for its_map in maps])


def correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.corrcoef(one, other)[0, 1])


@pytest.mark.gate
@pytest.mark.parametrize(
    ("members", "least", "most"),
    [
        ({"kernel": {"kind": "gaussian", "length_scale": 1.3}}, 0.93, 0.99),
        ({"kernel": {"kind": "cauchy", "length_scale": 1.0}}, 0.6, 0.95),
        # Half of the frequencies are the same: √½.
        ({"s": 128}, 0.57, 0.83),
        ({"form": "phase"}, 0.5, 0.8),
    ],
    ids=["length scale", "kernel", "size", "form"],
)
def test_maps_of_one_seed_err_alike(members: dict[str, Any], least: float, most: float) -> None:
    assert least < correlation(errors(), errors(**members)) < most
    # Five standard errors of a correlation of nothing.
    assert abs(correlation(errors(), errors(SEEDS, **members))) < 5 / np.sqrt(SEEDS)
