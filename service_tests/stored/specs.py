"""What is stored in a data directory that later versions must open: something of everything there is."""

import json
from pathlib import Path
from typing import Any

import numpy as np

Spec = dict[str, Any]
GAUSSIAN: Spec = {"kind": "gaussian", "length_scale": 1.5}
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


_FIRST = earlier("0_2_0", "datasets")
DATASETS: dict[str, tuple[Spec, int | None, str]] = {
    "points": (_FIRST["points"]["body"], None, "kernel-gaussian-ard"),
    "sparse": (_FIRST["sparse"]["body"], None, "defaults"),
    "kept-for-a-year": ({"vectors": rows(6, 3, 2)}, 365 * 24 * 3600, "sampler-dense_grid"),
}
"""Bodies, seconds to live, and the map that transforms them."""

_POINTS = {"dataset": "points"}
NEW: dict[str, Spec] = {}
"""What 0.2.0 had not."""
MAPS: dict[str, Spec] = {**earlier("0_2_0", "maps"), **NEW}
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
