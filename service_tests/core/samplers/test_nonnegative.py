"""Non-negative least squares, beside SciPy's."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls

from app.core.progress import Progress
from app.core.samplers.reweighted_grid import nonnegative, sparse_support
from service_tests.cases import each


def unwatched(products: float) -> None:
    """Nobody watches."""


def problem(n: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """A system A and b, with M = AᵀA and r = Aᵀb."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2 * n, n)), rng.standard_normal(2 * n)
    return a, b, a.T @ a, a.T @ b


@each("n", [1, 5, 60])
@each("guess", [False, True])
def test_the_solution_is_that_of_nnls_whatever_the_guess(n: int, guess: bool) -> None:
    for seed in range(5):
        a, b, matrix, right = problem(n, seed)
        found = nonnegative(matrix, right, np.full(n, guess), unwatched)
        np.testing.assert_allclose(found, nnls(a, b)[0], atol=1e-9)
        assert (found >= 0).all()


@pytest.mark.parametrize("count", [1, 5, 17, 60])
def test_a_penalty_leaves_as_many_as_asked(count: int) -> None:
    _, _, matrix, right = problem(60, 3)
    unbounded = np.flatnonzero(nonnegative(matrix, right, np.zeros(60, np.bool_), unwatched))
    found = sparse_support(matrix, right, count, Progress())
    assert len(found) == min(count, len(unbounded))
    assert count < 60 or (found == unbounded).all()
    # The penalty keeps what the right side wants most.
    assert count > 1 or found[0] == right.argmax()
