"""Weights of least box discrepancy: optimal, and as good as known."""

import numpy as np
import pytest

from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.errors import InvalidInput
from app.core.samplers.weighted import least_weights
from service_tests.cases import each
from service_tests.core.discrepancy.sets import KINDS, example
from service_tests.core.samplers.learned import cpu


@pytest.mark.parametrize(
    ("s", "box_scale", "known"),
    [(100, 1.0, 6.80e-5), (300, 1.0, 1.12e-6), (500, 1.0, 1.41e-7), (100, 0.25, 1.84e-8), (300, 0.25, 1.3e-11)],
)
def test_golden_values_on_the_cpu_data(s: int, box_scale: float, known: float) -> None:
    # An independent plain computation; the paper's table 2 has 7.84e-5, 1.45e-6, 3.39e-7, 1.67e-8 and 2.93e-9.
    made = cpu(s, box_scale, kind="weighted")
    assert made.report is not None
    assert made.report["objective_end"] == pytest.approx(known, rel=0.05)
    assert made.n_frequencies < 0.5 * s


@each("name", KINDS)
@each("d", [1, 3, 21])
@each("s", [1, 20, 150])
def test_the_conditions_of_karush_kuhn_and_tucker_hold(name: str, d: int, s: int) -> None:
    made, box, frequencies, _ = example(name, s, d)
    measure = BoxDiscrepancy(made, box)
    gram, means = measure.gram(frequencies), measure.means(frequencies)
    weights = least_weights(gram, means)
    slopes = gram @ weights - means
    # H is cut off at 1e-13 of its largest eigenvalue, up to s.
    assert (weights >= 0).all()
    assert np.abs(slopes[weights > 0]).max(initial=0.0) < 1e-6
    assert slopes.min() > -1e-6
    # Any step away from them, of those that keep them non-negative, goes up.
    best = measure.evaluate(frequencies, weights)
    for other in np.random.default_rng(0).exponential(0.1 / s, size=(20, s)):
        assert measure.evaluate(frequencies, weights + other) > best
        assert measure.evaluate(frequencies, np.maximum(weights - other, 0)) > best - 1e-14


@pytest.mark.parametrize(("gram", "mean"), [(np.inf, 1.0), (1.0, np.nan)])
def test_frequencies_that_leave_float64_are_refused(gram: float, mean: float) -> None:
    with pytest.raises(InvalidInput, match="leave the range of float64: take a larger length scale"):
        least_weights(np.array([[1.0, gram], [gram, 1.0]]), np.array([mean, 1.0]))
