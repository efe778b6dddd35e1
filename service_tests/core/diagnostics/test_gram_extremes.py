"""Gram errors of rows and frequencies of any size: finite figures and pictures, or a refusal by name."""

from typing import Any

import numpy as np
import pytest

from app.core.diagnostics import control_variates
from app.core.diagnostics.control_variates import ControlVariates, Estimator
from app.core.diagnostics.error_matrix import BINS
from app.core.diagnostics.hermitian_tiles import HermitianTiles
from app.core.errors import InvalidInput
from app.core.maps import opened
from app.pictures.figures import svg
from service_tests.cases import each, with_nightly
from service_tests.core.combinations import rows
from service_tests.core.diagnostics.measure import drawn, gram, gram_errors
from service_tests.core.specs import fourier, hashing

FORMS = ["complex", "cos_sin", "phase"]


@pytest.mark.parametrize("least", [1e-25, 1e-30, 0.0])
def test_hashes_of_tiny_errors_are_measured_and_drawn(least: float) -> None:
    x = np.array([[1e-25, least, 0, 0], [1e25, 0, 0, 0]], np.float32)
    found = gram(hashing(dtype="float32"), x)
    histogram, *_ = drawn(found)
    assert sum(histogram.heights) == pytest.approx(1)
    assert len(histogram.edges) == BINS + 1
    assert found.drawing is not None
    assert svg(found.drawing).startswith(b"<?xml")


@pytest.mark.parametrize("size", with_nightly([5e-324, 1e30], [0.0, 1e-310, 1e-50, 1e-40]))
def test_bins_of_any_width_count_every_entry(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    made, x = fourier(dtype="float64"), rows(10, 5)
    monkeypatch.setattr(type(made), "gram", lambda self, u, v, _: self.exact_gram(u, v, None) * 0 + size)
    monkeypatch.setattr(type(made), "exact_gram", lambda _, u, v, __: np.zeros((len(u), len(v))))
    monkeypatch.setattr("app.core.diagnostics.gram.exact_norms", lambda *_: (1.0, 1.0))
    monkeypatch.setattr("app.core.diagnostics.gram.ErrorMatrix.figures", lambda *_: {"relative_frobenius": size})
    found = gram(made, x, seeds=0)
    histogram, *_ = drawn(found)
    assert sum(histogram.heights) == pytest.approx(1)
    assert histogram.edges[-1] == -histogram.edges[0] == size
    assert found.drawing is not None
    assert svg(found.drawing).startswith(b"<?xml")


@each("form", FORMS)
@each("size", [1e20, 1e100, 1e155, 1e300])
@each("n", [5, 100])
def test_control_variates_of_huge_rows_correct_nothing(n: int, size: float, form: str) -> None:
    x = size * rows(n, 5)
    found = gram_errors(fourier(form=form, dtype="float64"), x, list(Estimator), seeds=0)["estimators"]
    # On the diagonal k is 1 and δ is 0; elsewhere k is 0.
    assert found["cv1"] == found["map"]
    assert found["cv2"] == found["map"]


@pytest.mark.parametrize("form", FORMS)
def test_the_controls_of_rows_far_out_are_those_near_the_origin(form: str) -> None:
    made = fourier(form=form, dtype="float64")
    near = np.round(rows(40, 5) * 1024) / 1024
    far = near + 2.0**36  # exact in float64, so that the differences are the same
    exact = made.exact_gram(near, near)
    nothing = np.zeros((40, 40))
    found, wanted = (ControlVariates(made).estimate(Estimator.cv2, x, x, exact, nothing) for x in (far, near))
    np.testing.assert_allclose(found.real, wanted.real, atol=2e-7)


def test_ordinary_rows_are_multiplied_out(monkeypatch: pytest.MonkeyPatch) -> None:
    made, x = fourier(dtype="float64"), rows(40, 5)
    exact, controls = made.exact_gram(x, x), ControlVariates(made)
    quick = controls.estimate(Estimator.cv2, x, x, exact, exact)
    monkeypatch.setattr(control_variates, "_MOST_ROUNDING", -1.0)
    np.testing.assert_allclose(quick, controls.estimate(Estimator.cv2, x, x, exact, exact), atol=1e-13)
    assert (quick != controls.estimate(Estimator.cv2, x, x, exact, exact)).any()


@each("estimator", ["cv1", "cv2"])
@each("frequency", [1e100, 1e153, 1e300])
@each("form", ["complex", "cos_sin"])
def test_moments_that_leave_the_range_are_refused(form: str, frequency: float, estimator: str) -> None:
    frozen = fourier(form=form, dtype="float64")
    arrays = dict(frozen.arrays)
    arrays["frequencies"][3, 1] = frequency
    made: Any = opened(frozen.spec, arrays)
    if form == "cos_sin" and estimator == "cv1" and frequency < 1e154:  # the map itself
        assert gram_errors(made, rows(100, 5), [Estimator(estimator)], seeds=0)["estimators"]
        return
    with pytest.raises(InvalidInput, match="leave the range of float") as caught:
        gram_errors(made, rows(100, 5), [Estimator(estimator)], seeds=0)
    assert caught.value.pointer == "/estimators"


@each("wrong", [np.nan, np.inf, 1e39])
@each("is_complex", [False, True])
def test_tiles_that_have_no_norm_are_refused(wrong: float, is_complex: bool) -> None:
    tile = np.eye(100) + (0j if is_complex else 0)
    tile[3, 2] = wrong
    with pytest.raises(InvalidInput, match="leave the range of float32") as caught:
        HermitianTiles(100, is_complex).add(tile)
    assert caught.value.pointer == "/estimators"
