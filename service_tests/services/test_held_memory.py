"""What an answer in blocks holds while it is sent: its map and the rows of its dataset, whoever else has them."""

from typing import Any

import numpy as np
import pytest

from app.core.arrays import shared_by
from app.core.maps import make_map
from app.core.maps.base import PAIRS
from app.core.spec import MapSpec
from app.services import vectors
from service_tests.services.conftest import LIMITS as FEW

LIMITS = FEW._replace(max_operations=1 << 30, max_result_bytes=1000)
FOURIER = {"kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "monte_carlo"}}
LANDMARKS = {**FOURIER, "sampler": {"kind": "uploaded_landmarks", "landmarks": ((0.0, 1.0, 2.0), (1.0, 0.0, 0.5))}}
HASHES = {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": 9}


@pytest.mark.parametrize("of_dataset", [False, True])
@pytest.mark.parametrize("spec", [{**FOURIER, "s": 9}, LANDMARKS, HASHES], ids=["fourier", "landmarks", "gcws"])
def test_an_answer_in_blocks_tells_which_map_and_dataset_it_holds(spec: dict[str, Any], of_dataset: bool) -> None:
    feature_map = make_map(MapSpec.model_validate({"input_dim": 3, **spec}))
    rows = np.random.default_rng(1).random((200, 3))
    rows.flags.writeable = not of_dataset
    if "gcws" in str(spec):
        answer = vectors.codes(feature_map, rows, PAIRS, LIMITS, 1)
    else:
        answer = vectors.transform(feature_map, rows, LIMITS, 1)
    assert shared_by(answer) == {id(feature_map): feature_map.bytes} | ({id(rows): rows.nbytes} if of_dataset else {})
