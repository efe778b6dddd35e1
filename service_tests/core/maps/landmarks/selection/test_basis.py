from unittest import mock

import numpy as np
import pytest
from scipy import sparse

from app.core.arrays import dense
from app.core.maps.landmarks.selection import base
from app.core.maps.landmarks.selection.base import Basis
from service_tests.cases import each
from service_tests.core.combinations import Fields
from service_tests.core.maps.landmarks.selection.chosen import (
    brute_force_residual,
    every_kernel,
    of,
    prepared,
)

FIRST, SECOND = np.array([3, 14, 15]), np.array([9, 2, 6, 5])


@every_kernel
@each("form", [np.array, sparse.csr_array])
def test_coordinates_are_nystroems_approximation(its_kernel: Fields, form: type) -> None:
    made = of(its_kernel)
    rows = prepared(made, 40)
    basis = Basis(made, form(rows))
    assert basis.residuals(rows) == pytest.approx(made.pairs(rows, rows))
    for numbers in (FIRST, SECOND):
        basis.add(numbers)
    chosen = rows[[*FIRST, *SECOND]]
    assert dense(basis.landmarks).tolist() == chosen.tolist()
    residual = brute_force_residual(made, rows, chosen)
    w = basis.of(form(rows))
    assert w @ w.T == pytest.approx(made.exact(rows, rows) - residual, abs=1e-9)
    assert basis.residuals(form(rows)) == pytest.approx(residual.diagonal(), abs=1e-9)
    assert not basis.residuals(chosen).any()
    # The coordinates of the landmarks are the Cholesky factor.
    assert basis.of(chosen) == pytest.approx(np.linalg.cholesky(made.exact(chosen, chosen)), abs=1e-9)


@every_kernel
def test_rows_are_accepted_by_their_residuals_after_those_before(its_kernel: Fields) -> None:
    made = of(its_kernel)
    rows = prepared(made, 40)
    basis = Basis(made, rows)
    basis.add(FIRST)
    offered = np.array([9, 3, 9, 2, 6, 2, 5, 30])
    taken = list(FIRST)
    wanted = []
    thresholds = np.linspace(0, 0.2, 8) * made.pairs(rows[:1], rows[:1])[0]
    for i, number in enumerate(offered):
        left = brute_force_residual(made, rows[[number]], rows[taken])[0, 0]
        assert not abs(left - thresholds[i]) < 1e-9 or left < 1e-9
        if left > max(thresholds[i], 1e-9):
            wanted.append(i)
            taken.append(number)
    assert basis.accept(offered, thresholds).tolist() == wanted
    assert len(basis) == 3


def test_a_row_offered_many_times_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Randomly pivoted Cholesky offers a row with a much larger residual than all others hundreds of times."""
    kernel, compare = of({"kind": "polynomial", "degree": 3}), mock.Mock(wraps=base.values)
    monkeypatch.setattr(base, "values", compare)
    Basis(kernel, sparse.csr_array(prepared(kernel, 9))).accept(np.array([4] * 200 + [7] * 50), np.zeros(250))
    assert [x.shape[0] for _, x, _ in (call.args for call in compare.mock_calls)] == [2]
