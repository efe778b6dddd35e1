"""What building and opening maps is reckoned to take, beside what it takes; of every sampler and family."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from app.core.building import Building
from app.core.maps import build, family_of, open_map
from app.core.maps.fourier.fourier_map import FourierMap
from service_tests.cases import with_nightly
from service_tests.core.combinations import with_rows
from service_tests.core.specs import SAMPLERS, kind, spec

# What is imported, cached, or of a fixed size.
FIXED = 3_000_000
BOX: dict[str, Any] = {"box": 3.0}
ROWS: dict[str, Any] = {"dataset": "d"}
N_ROWS = 1200
LEAST = 0.35
"""A part of what is reckoned that is taken at the least."""
LEAST_OF = {
    # The candidates are doubled only if they do not span the polynomials.
    "polynomially_exact": 0.05,
    # The memory of an optimisation fills with its steps, of which there are few here.
    "global_adaptive": 0.15,
    "weighted": 0.2,
    "reweighted_grid": 0.2,
    "gcws": 0.3,
    # LAPACK works in memory that is not traced.
    "landmarks": 0.2,
    "uploaded_landmarks": 0.3,
}
HASHING = ("gcws", "dart_minhash")
Case = tuple[dict[str, Any], int | None, int]
OfKernel = tuple[str, dict[str, Any], int | None, int]
POINTS = ("monte_carlo", "antithetic", "latin_hypercube", "halton", "sobol", "lattice", "digital_net", "orthogonal")
EVERY: list[Case] = [({"kind": one}, s, d) for one in POINTS for s, d in ((1 << 17, 8), (512, 1500))] + [
    ({"kind": "moment_matching", "base": {"kind": "sobol"}}, 1 << 17, 8),
    ({"kind": "moment_matching"}, 700, 600),
    ({"kind": "subsampled_grid", "points_per_dim": 9}, 1 << 17, 8),
    ({"kind": "dense_grid", "points_per_dim": 4}, None, 9),
    ({"kind": "sparse_grid", "level": 2}, None, 120),
    ({"kind": "structured_orthogonal"}, 1 << 19, 64),
    ({"kind": "uploaded", "frequencies": np.ones((20_000, 3)).tolist()}, None, 3),
    ({"kind": "polynomially_exact", "degree": 3}, None, 10),
    ({"kind": "weighted", **BOX}, 800, 8),
    ({"kind": "global_adaptive", "iterations": 5, **BOX}, 200, 400),
    ({"kind": "greedy_adaptive", "iterations": 1, "starts": 1, **BOX}, 150, 400),
    ({"kind": "lattice", "learn": True, **BOX}, 1024, 2),
    ({"kind": "reweighted_grid", **ROWS}, 400, 300),
    ({"kind": "gcws"}, 4096, 400),
    ({"kind": "dart_minhash"}, 4096, 400),
    ({"kind": "landmarks", "rows": 1000, **ROWS}, 500, 20),
    ({"kind": "landmarks", "selection": "leverage", "rows": 1000, **ROWS}, 400, 20),
    ({"kind": "landmarks", "selection": "k_means", "rows": 1000, **ROWS}, 500, 20),
    ({"kind": "landmarks", "selection": "uniform", "rows": 1000, **ROWS}, 500, 20),
    ({"kind": "uploaded_landmarks", "landmarks": np.random.default_rng(0).random((700, 20)).tolist()}, None, 20),
]
# Points of Matérn's law take a coordinate more; orthogonal directions go with normal laws only.
WITH_MATERN = [case for case in EVERY if case[0] in [{"kind": one} for one in POINTS if one != "orthogonal"]]
OF_KERNELS: list[OfKernel] = [
    *(("gaussian", *case) for case in EVERY),
    *(("matern", *case) for case in WITH_MATERN),
]


def taken(of: Any, building: Building) -> int:
    """Bytes that the building and opening of a map hold at the most, without the rows that it is made from."""
    if of.sampler.learned_from is not None:
        building.rows("d", "")
    tracemalloc.start()
    made = build(of, building)
    open_map(of, made.arrays)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_every_sampler_is_tried() -> None:
    assert {over["kind"] for over, *_ in EVERY} == {kind(model) for model in SAMPLERS}


@pytest.mark.gate
@pytest.mark.parametrize(
    ("its_kernel", "over", "s", "d"),
    with_nightly(OF_KERNELS[::4], [one for i, one in enumerate(OF_KERNELS) if i % 4]),
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
def test_it_takes_what_is_reckoned(its_kernel: str, over: dict[str, Any], s: int | None, d: int) -> None:
    kernel: dict[str, Any] = {"kind": its_kernel, "length_scale": 1.5 * d**0.5}
    if its_kernel == "matern":
        kernel["nu"] = 2.5
    of = spec(sampler=over, s=s, input_dim=d, kernel={"kind": "gmm"} if over["kind"] in HASHING else kernel)
    reckoned = family_of(of.sampler).drawing_bytes(of)
    assert LEAST_OF.get(over["kind"], LEAST) * reckoned < taken(of, with_rows(d, n=N_ROWS)) < reckoned + FIXED


def test_summands_are_put_together() -> None:
    windows = {"kind": "anova", "length_scale": 1.0, "windows": {"image_shape": [16, 16], "patch_shape": [4, 4]}}
    of = spec(kernel=windows, sampler={"kind": "monte_carlo"}, s=1 << 12, input_dim=256)
    reckoned = FourierMap.drawing_bytes(of)
    assert LEAST * reckoned < taken(of, Building()) < reckoned + FIXED
