"""Weights of least box discrepancy: optimal, as good as known, and said when they shrink the kernel."""

import numpy as np
import pytest

from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.samplers.weighted import least_weights
from service_tests.cases import each
from service_tests.core.discrepancy.sets import CPU_BOX, CPU_SIGMA, KINDS, example
from service_tests.core.samplers.learned import HALTON, Watched, built, cpu
from service_tests.core.specs import product_kernel, sampler


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
    best = measure.normalized(frequencies, weights)
    for other in np.random.default_rng(0).exponential(0.1 / s, size=(20, s)):
        assert measure.normalized(frequencies, weights + other) > best
        assert measure.normalized(frequencies, np.maximum(weights - other, 0)) > best - 1e-14


def test_a_frequency_that_comes_twice_shares_its_weight() -> None:
    made, box, frequencies, _ = example("gaussian", 40, 4)
    measure = BoxDiscrepancy(made, box)
    twice = np.concatenate([frequencies, frequencies])
    once, both = (least_weights(measure.gram(w), measure.means(w)) for w in (frequencies, twice))
    values = measure.normalized(frequencies, once), measure.normalized(twice, both)
    assert values[1] == pytest.approx(values[0], rel=1e-6)
    np.testing.assert_allclose(both[:40] + both[40:], once, atol=1e-4)


def test_kept_frequencies_are_those_of_the_base_in_their_order() -> None:
    made = cpu(100, 1.0, kind="weighted").arrays
    kernel, base = product_kernel("gaussian", CPU_SIGMA), sampler(**HALTON)
    every = base.frequency_set(kernel, 100, 21, np.random.default_rng(0)).frequencies
    places = [int(np.flatnonzero((every == row).all(axis=1))[0]) for row in made["frequencies"]]
    assert places == sorted(set(places))
    assert (made["weights"] > 0).all()
    measure = BoxDiscrepancy(kernel, CPU_BOX)
    weights = least_weights(measure.gram(every), measure.means(every))
    assert places == np.flatnonzero(weights).tolist()


def test_weights_that_shrink_the_kernel_are_told_and_can_be_normalised() -> None:
    shrunk, right, near = (
        cpu(100, scale, kind="weighted", normalize_weights=normalize)
        for scale, normalize in ((1.0, False), (1.0, True), (0.25, False))
    )
    told = [any("k(x, x) is not 1" in warning for warning in made.warnings) for made in (shrunk, right, near)]
    assert told == [True, False, False]
    assert shrunk.report is not None
    assert right.report is not None
    assert shrunk.report["weight_sum"] == pytest.approx(0.978, abs=0.001)
    assert right.report["weight_sum"] == pytest.approx(1, abs=1e-14)
    assert shrunk.report["objective_end"] < right.report["objective_end"] < 1.1e-3
    np.testing.assert_allclose(right.arrays["weights"] * shrunk.report["weight_sum"], shrunk.arrays["weights"])


def test_progress_is_told_in_parts_of_the_time_not_of_the_statements() -> None:
    # At s = 2000 the pairs take a fiftieth and the weights the rest: an estimate from equal steps would be absurd.
    watched = Watched()
    built(watched.building, sampler={"kind": "weighted", "box": 0.5}, s=64)
    assert [(step, of) for step, of, _ in watched.told] == [(1, 100), (3, 100), (100, 100)]


def test_dropping_frequencies_is_no_reason_to_warn_of_s() -> None:
    made = built(sampler={"kind": "weighted", "box": 0.5}, s=64)
    assert made.n_frequencies < 64
    assert made.warnings == ()
