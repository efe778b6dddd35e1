"""A Gram block of many rows is computed some rows at a time, with the same bits; similarities of many are refused."""

from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest

from app.core.arrays import RowBlocks
from app.core.errors import InvalidInput, TooLarge
from app.core.hashing.encodings import CodeOptions, Encoder, Encoding
from app.core.hashing.signed_codes import SIGNED
from app.core.maps import Gives, make_map
from app.core.progress import Abandoned
from app.core.spec import MapSpec
from app.services import vectors
from service_tests.cases import each
from service_tests.services.conftest import LIMITS as FEW

LIMITS = FEW._replace(max_operations=1 << 30, max_result_bytes=1 << 20)

USUAL = {"input_dim": 3, "kernel": {"kind": "gaussian", "length_scale": 1.0}, "sampler": {"kind": "monte_carlo"}}
SPECS: dict[str, dict[str, Any]] = {
    "cos_sin": {"s": 9, "normalize": True},
    "complex": {"s": 9, "form": "complex", "dtype": "float64"},
    "gcws": {"s": 9, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}},
    "landmarks": {"sampler": {"kind": "uploaded_landmarks", "landmarks": ((0.0, 1.0, 2.0), (1.0, 0.0, 0.5))}},
}


@each("name", SPECS)
def test_blocks_have_the_bits_of_the_whole(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    feature_map = make_map(MapSpec.model_validate(USUAL | SPECS[name]))
    x, y = np.random.default_rng(1).random((50, 3)), np.random.default_rng(2).random((4, 3))
    for tall, other in ((x, y), (y, x)):
        whole = vectors.kernel(feature_map, tall, other, False, LIMITS)["approximate"]
        with monkeypatch.context() as patch:
            patch.setattr(vectors, "_FEATURES_BYTES", 1)
            blocks = vectors.kernel(feature_map, tall, other, False, LIMITS)["approximate"]
        np.testing.assert_array_equal(blocks, whole, strict=True)
    if name == "gcws":
        x[33] = 0
        monkeypatch.setattr(vectors, "_FEATURES_BYTES", 1)
        with pytest.raises(InvalidInput, match="33"):
            vectors.kernel(feature_map, x, y, False, LIMITS)


def test_similarities_count_what_is_said_of_each_pair() -> None:
    feature_map = make_map(MapSpec.model_validate(USUAL | SPECS["gcws"]))
    n = LIMITS.max_result_bytes // 128
    by, codes, few = Encoder(Encoding.b_bit, 8), np.zeros((n + 1, 9), np.uint8), np.zeros((n, 9), np.uint8)
    assert vectors.similarity_of_codes(feature_map, few, few, by, None, LIMITS)
    with pytest.raises(TooLarge, match=f"{128 * (n + 1)} bytes; max_result_bytes"):
        vectors.similarity_of_codes(feature_map, codes, codes, by, None, LIMITS)
    ones = np.ones((n + 1, 3))
    with pytest.raises(TooLarge, match=f"{128 * (n + 1)} bytes; max_result_bytes"):
        vectors.similarity_of_vectors(feature_map, ones, ones, by, None, LIMITS)


def test_work_counts_features_and_codes_of_all_rows() -> None:
    feature_map = make_map(MapSpec.model_validate(USUAL | {"s": 1 << 12}))
    x = np.ones((300, 3))
    # Signs take 32 multiplications and the product of three, features 160; of a Gram block, the calls for 256
    # frequencies take 3 million.
    of_codes = 600 * (1 << 12) * (3 + 32)
    of_features = 600 * (1 << 12) * (3 + 2 * 160) + 300 * 300 * (1 << 13) + 16 * 3_000_000
    similarity, kernel = (
        partial(vectors.similarity_of_vectors, by=SIGNED, gamma=None),
        partial(vectors.kernel, exact=False),
    )
    for most, compare in ((of_codes, similarity), (of_features, kernel)):
        assert compare(feature_map, x, x, limits=LIMITS._replace(max_operations=most))
        with pytest.raises(TooLarge, match="max_operations"):
            compare(feature_map, x, x, limits=LIMITS._replace(max_operations=most - 1))


def test_work_counts_codes_that_are_combined() -> None:
    feature_map, x = make_map(MapSpec.model_validate(USUAL | {"s": 1 << 12})), np.ones((300, 3))
    by = feature_map.encoder_of(CodeOptions(Encoding.fingerprint, rows_per_band=1 << 12))
    limits = LIMITS._replace(max_operations=300 * (3 << 12) + 300 * (32 * ((1 << 12) - 1) + 160))
    assert vectors.codes(feature_map, x, by, limits, 0)
    with pytest.raises(TooLarge, match="max_operations"):
        vectors.codes(feature_map, x, by, limits._replace(max_operations=limits.max_operations - 1), 0)


@each("name", SPECS)
def test_work_pauses(name: str) -> None:
    """A pause raises if the client has left."""
    feature_map, x = make_map(MapSpec.model_validate(USUAL | SPECS[name])), np.ones((200, 3))
    calls: list[Any] = [partial(vectors.kernel, feature_map, x, x, False)]
    if Gives.features in feature_map.gives:
        calls.append(partial(vectors.transform, feature_map, x, per_number=0))
    if Gives.codes in feature_map.gives:
        by = feature_map.usual_encoders[0]
        calls.append(partial(vectors.codes, feature_map, x, by, per_number=0))
        calls.append(partial(vectors.similarity_of_vectors, feature_map, x, x, by, None))
    pause = mock.Mock(side_effect=Abandoned)
    for call in calls:
        with pytest.raises(Abandoned):
            call(limits=LIMITS, pause=pause)


def test_blocks_that_are_computed_later_pause_too() -> None:
    feature_map, pause = make_map(MapSpec.model_validate(USUAL | {"s": 64})), mock.Mock()
    answer = vectors.transform(feature_map, np.ones((200, 3)), LIMITS._replace(max_result_bytes=5000), 0, pause)
    features = answer["features"]
    assert isinstance(features, RowBlocks)
    pause.side_effect = Abandoned
    with pytest.raises(Abandoned):
        next(features.generate())
