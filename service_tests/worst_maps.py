"""Maps, datasets and indexes that the worst requests are about."""

# ruff: noqa: E501 - a map is a line

import time
from typing import Any

import httpx
import numpy as np

from service_tests.checks import put, put_dataset
from service_tests.formats.test_npz import npz
from service_tests.worst_bodies import MiB

NPZ = "application/x-npz"
BITS = 16 * MiB, 1
WIDEST = 8 * MiB
GAUSSIAN = {"kind": "gaussian", "length_scale": 1.0}
SUBSETS = [[(i + j) % 60 for j in range(9)] for i in range(1 << 16)]
MAPS: dict[str, dict[str, Any]] = {
    "one": {"input_dim": 1, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1},
    "wide": {"input_dim": 2700, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 16},
    "many": {"input_dim": 1, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1 << 20, "form": "phase"},
    "phases": {"input_dim": 1, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1 << 20, "form": "complex"},
    "frozen": {"input_dim": 256, "kernel": GAUSSIAN, "sampler": {"kind": "monte_carlo"}, "s": 1 << 16},
    "computed": {"input_dim": 1000, "kernel": GAUSSIAN, "sampler": {"kind": "structured_orthogonal"}, "s": 1 << 16},
    "signed": {"input_dim": 3, "kernel": GAUSSIAN, "sampler": {"kind": "sparse_grid", "level": 3}},
    "subsets": {"input_dim": 60, "kernel": {"kind": "anova", "length_scale": 1.0, "subsets": SUBSETS}, "sampler": {"kind": "monte_carlo"}, "s": 1 << 16},
    "hashes": {"input_dim": 2, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 8},
    "thousands": {"input_dim": 1000, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 64},
    "landmarks": {"input_dim": 2, "kernel": GAUSSIAN, "sampler": {"kind": "uploaded_landmarks", "landmarks": [[i / 7, i % 5] for i in range(200)]}},
    "tables": {"input_dim": 1 << 15, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 128},
    "sparse": {"input_dim": 1 << 20, "kernel": {"kind": "gmm"}, "sampler": {"kind": "uploaded_landmarks", "landmarks": [{"indices": [i, i + 9], "values": [1, i + 1]} for i in range(500)]}},
}  # fmt: skip


INDEXES: dict[str, dict[str, Any]] = {
    "kept": {"map": "hashes"},
    "rows": {"map": "thousands", "keep": "vectors"},
}


def prepare(http: httpx.Client) -> None:
    """Put the maps and datasets that the requests are about, and have libraries loaded that only some calls need."""
    rows = [[float(i)] for i in range(30)]
    asked = {
        "vectors": rows,
        "kernel": {"kind": "gaussian", "length_scale": "median"},
        "budget": 8,
        "y": [i % 2 for i in range(30)],
    }
    http.post("/v1/recommendations", json=asked).raise_for_status()
    for name, spec in MAPS.items():
        answer = put(http, name, spec)
        while answer.is_success and answer.json()["status"] == "building":  # by a job, as the machine is slow
            time.sleep(0.5)
            answer = http.get(f"/v1/maps/{name}")
        assert answer.is_success, answer.text[:500]
        assert answer.json()["status"] == "ready", answer.text[-500:]
    assert put_dataset(http, "bits", np.zeros(BITS, np.bool_)).status_code == 201
    assert put_dataset(http, "two", np.ones((1 << 18, 2), np.bool_)).status_code == 201
    # In the cache, as maps are once they are used: what is kept there is bounded by a setting of its own.
    assert http.post("/v1/maps/one/transform", json={"dataset": "bits", "rows": 1}).status_code == 200
    for name, index in INDEXES.items():
        assert http.put(f"/v1/indexes/{name}", json=index).status_code == 201
        ones = np.ones((5000, MAPS[index["map"]]["input_dim"]), np.uint8)
        for first in (0, 5000):
            body = npz(False, ids=np.arange(first, first + 5000), vectors=ones)
            assert http.post(f"/v1/indexes/{name}/vectors", content=body, headers={"Content-Type": NPZ}).is_success
    assert put_dataset(http, "ranges", np.zeros((100, 1 << 16), np.float32)).status_code == 201
