"""What is stored in a data directory that later versions must open: something of everything there is."""

import json
from pathlib import Path
from typing import Any

import numpy as np

Spec = dict[str, Any]
GAUSSIAN: Spec = {"kind": "gaussian", "length_scale": 1.5}
MATERN: Spec = {"kind": "matern", "nu": 1.5, "length_scale": 2.0}
ARRAYS = ("frequencies", "weights", "offsets", "signature", "landmarks", "root", "signs", "radii")


def rows(n: int, d: int, seed: int) -> list[list[float]]:
    """Some rows, of eighths."""
    found: list[list[float]] = (np.round(np.random.default_rng(seed).normal(size=(n, d)) * 8) / 8).tolist()
    return found


def spec(kernel: Spec, sampler: Spec, d: int = 4, **more: Any) -> Spec:
    """A spec of 4 dimensions, unless told otherwise."""
    return {"input_dim": d, "kernel": kernel, "sampler": sampler, "seed": 7, **more}


def earlier(version: str, group: str) -> Any:
    """What an earlier version was asked for."""
    told = json.loads((Path(__file__).parent / f"version_{version}.json").read_text())[group]
    return {name: one["spec"] for name, one in told.items()} if group == "maps" else told


# The datasets "points" and "sparse" are those of 0.1.0 too.
_FIRST = earlier("0_1_0", "datasets")
DATASETS: dict[str, tuple[Spec, int | None, str]] = {
    "points": (_FIRST["points"]["body"], None, "kernel-gaussian-ard"),
    "sparse": (_FIRST["sparse"]["body"], None, "defaults"),
    "kept-for-a-year": ({"vectors": rows(6, 3, 2)}, 365 * 24 * 3600, "sampler-dense_grid"),
}
"""Bodies, seconds to live, and the map that transforms them."""

_POINTS = {"dataset": "points"}
NEW: dict[str, Spec] = {
    "sampler-structured_orthogonal": spec(GAUSSIAN, {"kind": "structured_orthogonal"}, d=8, s=16),
    "sampler-structured_orthogonal-phase": spec(
        MATERN, {"kind": "structured_orthogonal"}, d=8, s=16, form="phase", dtype="float64"
    ),
    "sampler-uploaded_landmarks": spec(
        MATERN, {"kind": "uploaded_landmarks", "landmarks": rows(4, 4, 5)}, normalize=True
    ),
    "sampler-uploaded_landmarks-sparse": spec(
        GAUSSIAN, {"kind": "uploaded_landmarks", "landmarks": [{"indices": [0, 3], "values": [1, -2]}]}, d=5
    ),
    "kernel-rational_quadratic": spec(
        {"kind": "rational_quadratic", "alpha": 1.0, "length_scale": 1.5}, {"kind": "sobol"}, s=16
    ),
    "kernel-chi_squared": spec(
        {"kind": "chi_squared", "gamma": 0.5}, {"kind": "uploaded_landmarks", "landmarks": [[1, 0.5], [0.25, 2]]}, d=2
    ),
    "kernel-gmm-landmarks": spec({"kind": "gmm"}, {"kind": "uploaded_landmarks", "landmarks": rows(4, 4, 7)}),
    "input": spec(
        GAUSSIAN,
        {"kind": "halton"},
        s=16,
        input={"center": [1, 2, 3, 4], "scale": 2.0, "unit_norm": True, "missing": 0},
    ),
    "input-fitted": spec(GAUSSIAN, {"kind": "lattice"}, s=16, input={"fit": "robust", **_POINTS}),
    "input-hashing": spec(
        {"kind": "gmm"}, {"kind": "gcws"}, s=16, input={"fit": "standardize", **_POINTS}, dtype="float64"
    ),
    "asked-length_scale": spec({**GAUSSIAN, "length_scale": "median", **_POINTS}, {"kind": "sobol"}, s=16),
    "asked-length_scales": spec(
        {**MATERN, "length_scale": {"per_column": "nearest_neighbor", **_POINTS}}, {"kind": "monte_carlo"}, s=16
    ),
    "asked-seed": {**spec(GAUSSIAN, {"kind": "sobol"}, s=16), "seed": None},
    "learned-landmarks": spec(GAUSSIAN, {"kind": "landmarks", **_POINTS}, s=8),
    "learned-landmarks-k_means": spec(
        {"kind": "polynomial", "degree": 2, "gamma": 0.5, "coef0": 1.0},
        {"kind": "landmarks", "selection": "k_means", **_POINTS},
        s=8,
    ),
    "learned-on-differences": spec(
        MATERN, {"kind": "global_adaptive", "differences": "data", "iterations": 5, **_POINTS}, s=16
    ),
}
MAPS: dict[str, Spec] = {**earlier("0_1_0", "maps"), **NEW}
FAILED = {"failed": spec(GAUSSIAN, {"kind": "greedy_adaptive", "iterations": 50, **_POINTS}, s=64)}
BUILDING = {"building": spec(GAUSSIAN, {"kind": "global_adaptive", "iterations": 2, **_POINTS}, s=8)}
INTERRUPTED = {
    "interrupted": spec(GAUSSIAN, {"kind": "greedy_adaptive", "iterations": 3, "starts": 8, **_POINTS}, s=400)
}

WORK: dict[str, tuple[str, Spec]] = {
    "diagnose": (
        "/v1/maps/kernel-gaussian-ard/diagnostics/gram",
        {**_POINTS, "rows": 12, "seed": 3, "estimators": ["map", "cv1", "cv2"], "seeds": 2},
    ),
    "diagnose-posted": ("/v1/maps/kernel-gmm/diagnostics/collisions", {"vectors": rows(5, 4, 8), "bits": 4}),
    "recommend": (
        "/v1/recommendations",
        {
            **_POINTS,
            "kernel": {"kind": "gaussian", "length_scale": "median"},
            "budget": 32,
            "seeds": 2,
            "seed": 1,
            "samplers": ["sobol", "monte_carlo", {"kind": "halton", "scramble": "reverse_radix"}],
        },
    ),
}
"""Work that is left unfinished beside maps: where it is asked for, and how."""
ROWS = {"2": [[0.5, 0.25], [1, 0], [0.125, 3]], **{str(d): rows(3, d, d) for d in (3, 4, 5, 8)}}
"""What is transformed, by the number of columns. The kernel chi_squared, of two, wants no negative entries."""
