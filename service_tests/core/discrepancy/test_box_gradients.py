"""Gradients of the box discrepancy against differences of the value, and the same bits from any number of threads."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from service_tests.cases import each, with_nightly
from service_tests.core.discrepancy.sets import KINDS, Matrix, example


def differences(of: Callable[[Matrix], float], at: Matrix, step: float) -> Matrix:
    """Central differences of fourth order: truncation some step⁴, rounding some 1e-16/step."""
    found = np.empty(at.shape)
    for index in np.ndindex(at.shape):
        moved = {}
        for k in (-2, -1, 1, 2):
            point = at.copy()
            point[index] += k * step
            moved[k] = of(point)
        found[index] = (moved[-2] - 8 * moved[-1] + 8 * moved[1] - moved[2]) / (12 * step)
    return found


def assert_close(found: Matrix, expected: Matrix) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("d", [1, 3, 21, 60])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_gradient_equals_differences(name: str, d: int, is_weighted: bool) -> None:
    made, box, frequencies, weights = example(name, 5, d)
    given = weights if is_weighted else None
    frequencies[3] = frequencies[0]  # points that meet
    frequencies[4] = frequencies[0] + 1e-3
    measure = BoxDiscrepancy(made, box)
    value, gradients = measure.value_and_gradient(frequencies, given)
    assert value == pytest.approx(measure.evaluate(frequencies, given), abs=1e-15)
    assert_close(gradients, differences(lambda w: measure.evaluate(w, given), frequencies, 2e-3 / box.max()))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("zeros", [1, 2, 30])
def test_zero_factors_in_sixty_dimensions_keep_the_gradient(name: str, zeros: int) -> None:
    # Multiples of π/b apart in some coordinates: the factors there are 0 to the last bit.
    made, box, frequencies, _ = example(name, 4, 60)
    frequencies[1:] = frequencies[0] + 0.1 * np.random.default_rng(2).normal(size=(3, 60)) / box
    frequencies[1:, :zeros] = frequencies[0, :zeros] + np.pi / box[:zeros] * np.array([[1], [2], [3]])
    measure = BoxDiscrepancy(made, box)
    off_diagonal = measure.gram(frequencies)[~np.eye(4, dtype=bool)]
    assert np.abs(off_diagonal).max() <= 1e-12**zeros  # of thirty, 0 exactly
    _, gradients = measure.value_and_gradient(frequencies)
    expected = differences(measure.evaluate, frequencies, 2e-3)
    assert_close(gradients, expected)
    if zeros == 1:  # the repulsion of the pairs is all in that coordinate, and not lost
        assert np.abs(gradients[:, 0]).max() > 1e-2 * box[0]


@each("name", KINDS)
@pytest.mark.parametrize(("s", "d"), with_nightly([(3, 1), (150, 7)], [(401, 20)]))
def test_any_number_of_threads_gives_the_same_bits(name: str, s: int, d: int) -> None:
    made, box, frequencies, weights = example(name, s, d)

    def every(threads: int) -> list[Any]:
        measure = BoxDiscrepancy(made, box, threads)
        value, gradients = measure.value_and_gradient(frequencies, weights)
        return [
            np.array([value, measure.evaluate(frequencies, weights)]),
            gradients,
            measure.gram(frequencies),
            *measure.means_and_gradients(frequencies),
            *measure.pulls_of(frequencies, weights)(frequencies + 1),
        ]

    alone = every(1)
    for threads in (2, 3, 8):
        for one, other in zip(alone, every(threads), strict=True):
            assert one.tobytes() == other.tobytes()
