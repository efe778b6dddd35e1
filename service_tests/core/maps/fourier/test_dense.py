"""The dense projection: phases of dense and sparse rows, for any of the frequencies."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core.maps.fourier.dense import DenseProjection
from app.core.maps.terms import FrozenArray
from service_tests.core.specs import spec

FREQUENCIES = np.random.default_rng(1).normal(size=(50, 4))
ROWS = np.random.default_rng(2).normal(size=(7, 4)) * (np.random.default_rng(3).random((7, 4)) < 0.6)

every_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


def projection(dtype: str = "float64") -> DenseProjection:
    return DenseProjection(spec(dtype=dtype), {"frequencies": FREQUENCIES.astype(dtype)})


@every_dtype
@pytest.mark.parametrize("made", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_phases_are_the_products_of_rows_and_frequencies(made: Any, dtype: str) -> None:
    rows, found = made(ROWS.astype(dtype)), projection(dtype)
    step = found.frequencies_per_block
    for of in (slice(0, 50), slice(0, 1), slice(step, min(50, step + 7))):
        wanted = ROWS @ FREQUENCIES[of].T
        phases = np.empty_like(wanted, dtype)
        found.projector(rows)(of, phases)
        np.testing.assert_allclose(phases, wanted, rtol=1e-5 if dtype == "float32" else 1e-13, atol=1e-6)


@every_dtype
def test_the_frequencies_are_those_that_were_frozen(dtype: str) -> None:
    found = projection(dtype).frequencies
    assert found.dtype == dtype
    assert (found == FREQUENCIES.astype(dtype)).all()
    frozen = DenseProjection.frozen(spec(dtype=dtype), 50)
    assert frozen == {"frequencies": FrozenArray((50, 4), np.dtype(dtype))}


def test_no_phase_is_larger_than_the_largest_norm_times_the_largest_entry() -> None:
    largest = np.argmax(np.abs(FREQUENCIES).sum(axis=1))
    row, phase = np.sign(FREQUENCIES[largest : largest + 1]), np.empty((1, 50))
    projection().projector(row)(slice(0, 50), phase)
    assert projection().largest_norm == pytest.approx(phase.max(), rel=1e-15)
    assert projection().largest_norm == pytest.approx(np.abs(FREQUENCIES).sum(axis=1).max(), rel=1e-15)
    overflowing = DenseProjection(spec(), {"frequencies": np.full((2, 4), 1e308)})
    assert overflowing.largest_norm == np.inf


def test_a_sparse_row_takes_as_many_operations_as_it_has_entries() -> None:
    assert projection().operations(ROWS) == 7 * 4 * 50
    assert projection().operations(csr_array(ROWS)) == np.count_nonzero(ROWS) * 50
