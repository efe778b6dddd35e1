"""Rows are made ready for comparison a block at a time, and errors name their places in the whole request."""

from typing import Any

import numpy as np
import pytest

from app.core.diagnostics import box_discrepancy
from app.core.diagnostics.box_discrepancy import BoxDiscrepancy
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap, base, make_map
from app.core.maps.fourier import features, fourier_map
from app.core.spec import MapSpec
from service_tests.cases import each

N, BAD = 700, 640
LANDMARKS = {"kind": "uploaded_landmarks", "landmarks": ((0.5, 1.0, 2.0), (1.0, 0.0, 0.5))}
CORRELATION = {"kind": "correlation_rbf", "gamma": 1.0}
REFUSED: dict[str, tuple[dict[str, Any], list[float], str]] = {
    "fourier": ({"kernel": CORRELATION, "s": 9}, [0, 0, 0], f"row {BAD} is all zero"),
    "landmarks": ({"kernel": CORRELATION, "sampler": LANDMARKS}, [0, 0, 0], f"row {BAD} is all zero"),
    "signs": ({"kernel": {"kind": "chi_squared"}, "sampler": LANDMARKS}, [1, -1, 0], f"row {BAD}, column 1 is -1;"),
    "min-max": ({"kernel": {"kind": "gmm"}, "sampler": LANDMARKS}, [0, 0, 0], f"row {BAD} is all zero"),
}


def made(**members: Any) -> FeatureMap:
    return make_map(MapSpec.model_validate({"input_dim": 3, "sampler": {"kind": "monte_carlo"}} | members))


def rows(seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random((N, 3)) + 0.1


@each("name", REFUSED)
def test_an_invalid_row_of_a_later_block_is_named_by_its_place(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(base, "_ENTRIES_PER_BLOCK", 300)
    members, bad, detail = REFUSED[name]
    feature_map, x = made(**members), rows()
    x[BAD] = bad
    for call, pointer in (
        (lambda: feature_map.check_rows(x, "/vectors"), "/vectors"),
        (lambda: feature_map.transform(x), "/vectors"),
        (lambda: feature_map.gram(rows(), x), "/y"),
    ):
        with pytest.raises(InvalidInput, match=detail) as refused:
            call()
        assert refused.value.pointer.startswith(f"{pointer}/{BAD}")


@each("form", ["cos_sin", "phase", "complex"])
def test_features_have_the_same_bits_whatever_is_made_ready_at_a_time(
    monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    feature_map = made(kernel=CORRELATION, s=9, form=form, normalize=True)
    x, y = rows(), rows(2)[:40]
    whole = feature_map.transform(x), feature_map.gram(x, y), feature_map.codes(x)
    monkeypatch.setattr(features, "_ENTRIES_MADE_READY", 21)
    monkeypatch.setattr(fourier_map, "_BITS_HELD", 9 * 100)
    in_blocks = feature_map.transform(x), feature_map.gram(x, y), feature_map.codes(x)
    for of_blocks, wanted in zip(in_blocks, whole, strict=True):
        np.testing.assert_array_equal(of_blocks, wanted, strict=True)
    x[BAD] = 0
    with pytest.raises(InvalidInput, match=f"row {BAD} is all zero"):
        feature_map.codes(x)


@each("kernel", [CORRELATION, {"kind": "laplacian", "length_scale": 2.0}])
def test_the_box_of_rows_is_that_of_the_blocks_together(
    monkeypatch: pytest.MonkeyPatch, kernel: dict[str, Any]
) -> None:
    x = rows()
    monkeypatch.setattr(box_discrepancy, "_ENTRIES_PER_BLOCK", 300)
    compared = x / np.linalg.norm(x, axis=1, keepdims=True) if kernel is CORRELATION else x
    found = BoxDiscrepancy()._box(made(kernel=kernel, s=9), {"vectors": x})
    np.testing.assert_allclose(found, np.ptp(compared, axis=0), rtol=1e-15)


def test_a_kernel_that_is_no_product_is_refused_before_its_rows_are_read() -> None:
    matern = made(kernel={"kind": "matern", "nu": 1.5, "length_scale": 1.0}, s=9)
    with pytest.raises(InvalidInput, match="got matern"):
        BoxDiscrepancy().check(matern, {"vectors": np.empty((0, 3))})
