"""Recommendations by labels."""

from typing import Any

import httpx
import numpy as np
import pytest

LABELLED = np.random.default_rng(11).normal(size=(160, 4)).round(3)
CLASSES = np.array(["in", "out"])[(np.linalg.norm(LABELLED, axis=1) > 1.9).astype(int)].tolist()


@pytest.mark.parametrize("y", [{"column": 4}, {"dataset": "NAME-labels"}, "list"])
def test_labels_of_a_dataset_are_a_column_of_it_or_of_another_or_a_list(http: httpx.Client, name: str, y: Any) -> None:
    labels = [float(one == "in") for one in CLASSES]
    rows = np.column_stack([LABELLED, labels]) if "column" in y else LABELLED
    assert http.put(f"/v1/datasets/{name}", json={"vectors": rows.tolist()}).status_code == 201
    if "dataset" in y:
        y = {"dataset": y["dataset"].replace("NAME", name)}
        vectors = [[label] for label in labels]
        assert http.put(f"/v1/datasets/{y['dataset']}", json={"vectors": vectors}).status_code == 201
    body: dict[str, Any] = {
        "dataset": name,
        "rows": 120,
        "y": labels if y == "list" else y,
        "kernel": {"kind": "gaussian", "length_scale": "median"},
        "multiples": [1],
        "budget": 32,
        "samplers": ["sobol", "orthogonal"],
        "seeds": 1,
    }
    answer = http.post("/v1/recommendations", json=body, headers={"Prefer": "wait=60"})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["rows"], found["best"]["input_dim"]) == (120, 4)
    assert found["ranked"][0]["score_mean"] > 0.6
    numbers = http.post("/v1/recommendations", json=body | {"labels_are": "numbers"}, headers={"Prefer": "wait=60"})
    # R² of 0 and 1 is not the share that is right.
    assert numbers.json()["ranked"][0]["score_mean"] < found["ranked"][0]["score_mean"]
