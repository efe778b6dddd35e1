"""Gram errors of rows far from 0 and of frequencies that are huge: right, or refused by name."""

from typing import Any

import numpy as np
import pytest

from app.core.diagnostics.error_matrix import ControlVariates, Estimator
from app.core.errors import InvalidInput
from app.core.maps import open_map
from service_tests.cases import each
from service_tests.core.combinations import rows
from service_tests.core.diagnostics.measure import gram_errors
from service_tests.core.specs import fourier

FORMS = ["complex", "cos_sin", "phase"]


@pytest.mark.parametrize("form", FORMS)
def test_the_controls_of_rows_far_out_are_those_near_the_origin(form: str) -> None:
    made = fourier(form=form, dtype="float64")
    near = np.round(rows(40, 5) * 1024) / 1024
    far = near + 2.0**36  # exact in float64, so that the differences are the same
    exact = made.exact_gram(near, near)
    nothing = np.zeros((40, 40))
    found, wanted = (ControlVariates(made).estimate(Estimator.cv2, x, x, exact, nothing) for x in (far, near))
    np.testing.assert_allclose(found.real, wanted.real, atol=2e-7)


@pytest.mark.parametrize("form", FORMS)
def test_the_controls_do_not_depend_on_the_units_of_columns(form: str) -> None:
    """The squares of two of these length scales, and of their frequencies, leave float64."""
    x, units = rows(40, 5), 2.0 ** np.array([700, 0, -700, -300])
    exact, nothing, found = fourier(form=form, dtype="float64").exact_gram(x, x), np.zeros((40, 40)), []
    for unit in (np.ones(4), units):
        made = fourier(form=form, dtype="float64", kernel={"kind": "gaussian", "length_scale": unit.tolist()})
        found.append(ControlVariates(made).estimate(Estimator.cv2, x * unit, x * unit, exact, nothing))
    assert np.abs(found[0]).max() > 0.01
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)


@each("estimator", ["cv1", "cv2"])
@each("frequency", [1e100, 1e153, 1e300])
@each("form", ["complex", "cos_sin"])
def test_moments_that_leave_the_range_are_refused(form: str, frequency: float, estimator: str) -> None:
    frozen = fourier(form=form, dtype="float64")
    arrays = dict(frozen.arrays)
    arrays["frequencies"][3, 1] = frequency
    made: Any = open_map(frozen.spec, arrays)
    if form == "cos_sin" and estimator == "cv1" and frequency < 1e154:  # the map itself
        assert gram_errors(made, rows(100, 5), [Estimator(estimator)], seeds=0)["estimators"]
        return
    with pytest.raises(InvalidInput, match="leave the range of float") as caught:
        gram_errors(made, rows(100, 5), [Estimator(estimator)], seeds=0)
    assert caught.value.pointer == "/estimators"
