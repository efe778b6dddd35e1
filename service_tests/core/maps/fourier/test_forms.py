"""The forms: columns of given phases, and the variance that one frequency has in them."""

from typing import Any

import numpy as np
import pytest

from app.core.maps.fourier.forms import FORMS, Columns
from app.core.maps.fourier.sine_cosine import write_columns
from app.core.maps.terms import Form
from service_tests.cases import each

PHASES = np.random.default_rng(4).normal(size=(5, 3)) * 10
AMPLITUDES, OFFSETS = np.array([0.5, 1.0, 2.0]), np.array([0.0, 1.0, 6.0])
WANTED: dict[Form, Any] = {
    Form.complex: AMPLITUDES * np.exp(-1j * PHASES),
    Form.cos_sin: np.hstack([AMPLITUDES * np.cos(PHASES), AMPLITUDES * np.sin(PHASES)]),
    Form.phase: AMPLITUDES * np.cos(PHASES + OFFSETS),
}


def write(columns: Columns, phases: Any, amplitudes: Any, offsets: Any, out: Any, first: int) -> None:
    """Write columns of these phases into `out`."""
    write_columns(columns.written, np.ascontiguousarray(phases), offsets, amplitudes, out.view(np.float64), first)


every_form = pytest.mark.parametrize("form", list(Form))


def test_every_form_has_its_columns() -> None:
    assert set(FORMS) == set(Form) == set(WANTED)


@every_form
def test_columns_are_those_that_the_catalogue_describes(form: Form) -> None:
    columns, wanted = FORMS[form], WANTED[form]
    assert columns.is_complex == np.iscomplexobj(wanted)
    assert wanted.shape[1] == 3 * columns.per_frequency
    # Into some rows and frequencies of a larger array, as features are: frequencies 1 to 3 of 5.
    out = np.full((9, 5 * columns.per_frequency), np.nan, wanted.dtype)
    write(columns, PHASES, AMPLITUDES, OFFSETS, out[2:7], 1)
    filled = out.reshape(9, columns.per_frequency, 5)[2:7, :, 1:4]
    np.testing.assert_allclose(filled.reshape(5, -1), wanted, rtol=0, atol=1e-14)
    assert np.isnan(out).sum() == out.size - wanted.size


@every_form
@each("lag", [0.0, 0.3, 1.0, 4.0])
def test_one_frequency_has_the_variance_said(form: Form, lag: float) -> None:
    rng, n = np.random.default_rng(5), 400_000
    frequencies, offsets = rng.standard_normal(n), rng.uniform(0, 2 * np.pi, n)
    columns = FORMS[form]
    amplitudes = np.full(n, np.sqrt(columns.squared_amplitude))
    features = np.empty((2, n * columns.per_frequency), complex if columns.is_complex else float)
    points = np.array([[0.7], [0.7 + lag]])
    write(columns, points * frequencies, amplitudes, offsets, features, 0)
    products = (features[0] * features[1].conj()).reshape(columns.per_frequency, n).sum(axis=0)
    squares = np.abs(products - np.exp(-(lag**2) / 2)) ** 2
    wanted = columns.variance(np.exp(-(lag**2) / 2), np.exp(-2 * lag**2))
    assert abs(squares.mean() - wanted) < 4 * squares.std() / np.sqrt(n) + 1e-12
