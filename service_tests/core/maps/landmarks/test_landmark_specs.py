"""Which specs of landmarks have a map: of the widest sparse rows some, and none without a meaning."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core.errors import InvalidInput
from app.core.maps import make_map
from app.core.maps.landmarks.landmark_map import LandmarkMap
from service_tests.cases import each
from service_tests.core.specs import refusal, spec

SPARSE = {"indices": [0, 3], "values": [1.0, 2.0]}
WIDE = {"kind": "uploaded_landmarks", "landmarks": [SPARSE | {"indices": [0, (1 << 31) - 1]}, SPARSE]}


def test_the_widest_sparse_landmarks_have_a_map_where_the_kernel_compares_them_as_they_are() -> None:
    found = make_map(spec(input_dim=1 << 31, s=None, sampler=WIDE, kernel={"kind": "gmm"}))
    assert LandmarkMap.frozen_bytes(found.spec) < 1 << 29
    x = csr_array(([1.0, 2.0], [0, 3], [0, 2]), shape=(1, 1 << 31), dtype=np.float32)
    np.testing.assert_allclose(found.gram(x, x), 1, rtol=1e-6)


def test_vectors_that_a_kernel_makes_dense_have_four_million_entries_at_most() -> None:
    wide = {"input_dim": (1 << 22) + 1, "s": None, "sampler": WIDE | {"landmarks": [SPARSE]}}
    with pytest.raises(InvalidInput, match="kernel laplacian compares dense vectors: 4194304 entries are the most"):
        make_map(spec(**wide, kernel={"kind": "laplacian", "length_scale": 1.0}))
    found = make_map(spec(**wide, kernel={"kind": "gaussian", "length_scale": 1.0}))
    x = csr_array(([1e20], [0], [0, 1]), shape=(1, (1 << 22) + 1), dtype=np.float32)
    assert found.transform(x).tolist() == [[0]]


@each(
    ("members", "pointer"),
    [
        ({"s": None, "sampler": {"kind": "landmarks", "dataset": "rows"}}, "/s"),
        ({"form": "phase", "sampler": {"kind": "landmarks", "dataset": "rows"}}, "/form"),
        ({"input_dim": 1 << 31, "s": None, "sampler": WIDE}, "/sampler/landmarks"),
        ({"input_dim": 1 << 20, "s": 65, "sampler": {"kind": "landmarks", "dataset": "rows"}}, "/s"),
        ({"sampler": {"kind": "uploaded_landmarks", "landmarks": [[1.0, 2.0]]}}, "/sampler/landmarks/0"),
        ({"sampler": {"kind": "uploaded_landmarks", "landmarks": [[1.0] * 4, SPARSE]}}, "/sampler/landmarks/1"),
        (
            {"sampler": {"kind": "uploaded_landmarks", "landmarks": [SPARSE | {"indices": [0, 4]}]}},
            "/sampler/landmarks/0/indices",
        ),
        (
            {"sampler": {"kind": "uploaded_landmarks", "landmarks": [SPARSE | {"values": [1.0]}]}},
            "/sampler/landmarks/0",
        ),
    ],
)
def test_specs_without_meaning_are_refused_by_name(members: dict[str, Any], pointer: str) -> None:
    assert refusal(**members).pointer == pointer
