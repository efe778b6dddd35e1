"""What the drawing of sets is reckoned to take, beside what it takes."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from app.core.maps.fourier.projections import frequency_set
from app.core.samplers.base import FrequencySampler
from service_tests.cases import with_nightly
from service_tests.core.combinations import named, with_rows
from service_tests.core.specs import spec

# What is imported, cached, or of a fixed size.
FIXED = 6_000_000
BOX = {"box": 3.0}
POINTS = ("monte_carlo", "antithetic", "latin_hypercube", "halton", "sobol", "lattice", "digital_net", "orthogonal")
EVERY: list[tuple[dict[str, Any], int | None, int]] = [({"kind": kind}, 4096, 1000) for kind in POINTS] + [
    ({"kind": "moment_matching", "base": {"kind": "sobol"}}, 4096, 500),
    ({"kind": "subsampled_grid", "points_per_dim": 5}, 4096, 1000),
    ({"kind": "weighted", **BOX}, 400, 8),
    ({"kind": "global_adaptive", "iterations": 5, **BOX}, 200, 400),
    ({"kind": "greedy_adaptive", "iterations": 2, **BOX}, 100, 400),
    ({"kind": "lattice", "learn": True, **BOX}, 1024, 2),
    ({"kind": "reweighted_grid", "dataset": "d"}, 400, 300),
    ({"kind": "polynomially_exact", "degree": 3}, None, 10),
]
LARGE: list[tuple[dict[str, Any], int | None, int]] = [
    ({"kind": "sobol"}, 16, 3000),
    ({"kind": "moment_matching"}, 1100, 1000),
    ({"kind": "weighted", **BOX}, 1500, 8),
    ({"kind": "global_adaptive", "iterations": 25, **BOX}, 200, 400),
]


@pytest.mark.gate
@pytest.mark.parametrize(
    ("over", "s", "d"),
    with_nightly(EVERY[::4], [one for i, one in enumerate(EVERY) if i % 4] + LARGE),
    ids=lambda value: named(value) if isinstance(value, dict) else None,
)
def test_it_stays_within_what_is_reckoned(over: dict[str, Any], s: int | None, d: int) -> None:
    drawn = spec(sampler=over, s=s, input_dim=d, kernel={"kind": "gaussian", "length_scale": 1.5 * d**0.5})
    assert isinstance(drawn.sampler, FrequencySampler)
    tracemalloc.start()
    frequency_set(drawn, np.random.default_rng(0), with_rows(d, n=600))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    reckoned = drawn.sampler.drawing_bytes(drawn.sampler.count(s, d), d)
    assert 0.05 * reckoned < peak < reckoned + FIXED
