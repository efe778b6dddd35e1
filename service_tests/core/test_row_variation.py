"""What rows contribute to the uncertainty of an error, against samples drawn again and again."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.diagnostics.error_matrix import HEAVY, RowVariation, row_variation

N, SAMPLES = 100, 400


def matrices(rng: np.random.Generator, n: int, tail: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Squared errors and squared kernels of rows, of which some have much larger errors, the more the larger `tail`."""
    x = rng.normal(size=(n, 3))
    kernel = np.exp(-np.square(x[:, None] - x).sum(axis=2))
    size = np.exp(tail * rng.normal(size=n))
    errors = 0.01 * size[:, None] * size * rng.normal(size=(n, n))
    return np.square(np.triu(errors) + np.triu(errors, 1).T), np.square(kernel)


@pytest.mark.parametrize("tail", [0.0, 0.3, 0.6])
def test_the_deviation_is_that_of_other_samples_and_intervals_hold_for_these(tail: float) -> None:
    rng = np.random.default_rng(5)
    found, variations = np.empty(SAMPLES), list[RowVariation]()
    for k in range(SAMPLES):
        errors, kernel = matrices(rng, N, tail)
        found[k] = np.sqrt(errors.sum() / kernel.sum())
        variations.append(row_variation(errors.sum(axis=1), kernel.sum(axis=1)))
    told = np.sqrt(np.mean([np.square(one.deviation) for one in variations]))
    # The standard error of a deviation of 400 samples is 3.5 %; heavy tails make it larger.
    assert told == pytest.approx(np.log(found).std(), rel=0.15)
    other = np.roll(found, 1)
    ends = np.array([*map(RowVariation.interval, variations, found)])
    inside = np.mean((ends[:, 0] <= other) & (other <= ends[:, 1]))
    assert 0.92 <= inside <= 0.99  # 95 %, whose standard error is 1.1 %


def test_few_rows_count_for_few() -> None:
    errors, kernel = np.ones(50), np.ones(50)
    errors[7] = 1000.0
    heavy = row_variation(errors, kernel)
    assert heavy.effective_rows < 2 < HEAVY
    low, high = heavy.interval(1.0)
    assert low * high == pytest.approx(1)
    assert high > 5
    even = row_variation(np.linspace(1, 2, 50), kernel)
    assert 20 < even.effective_rows <= 50
    assert row_variation(np.zeros(50), kernel) == row_variation(kernel, kernel) == (0.0, 50.0)
    assert heavy._replace(deviation=0.0).interval(2.0) == (2.0, 2.0)
    _, wider = even.interval(1.0, of_maps=(0.25, 9.0))
    assert wider > even.interval(1.0)[1]
