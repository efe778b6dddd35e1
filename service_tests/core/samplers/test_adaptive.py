"""Frequencies moved to a least box discrepancy, all at once or one by one."""

import numpy as np
import pytest

from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from service_tests.cases import with_nightly
from service_tests.core.discrepancy.sets import KINDS, example
from service_tests.core.samplers.learned import HALTON, built, cpu


@pytest.mark.nightly
@pytest.mark.parametrize(("box_scale", "most"), [(1.0, 1.0e-6), (0.25, 6e-8)])
def test_global_is_as_good_as_the_papers_on_the_cpu_data(box_scale: float, most: float) -> None:
    # The paper's table 2 has 1.29e-6 and 5.57e-8; with nonlinear conjugate gradients 9.2e-7 and 2.9e-8 were reached.
    made = cpu(100, box_scale, kind="global_adaptive", iterations=200)
    assert made.report is not None
    assert made.report["objective_end"] < most
    assert made.report["objective_start"] == pytest.approx({1.0: 4.47e-3, 0.25: 1.37e-4}[box_scale], rel=2e-3)


@pytest.mark.parametrize(
    ("s", "box_scale", "known"), with_nightly([(100, 1.0, 4.00e-4)], [(100, 0.25, 3.04e-5), (300, 0.25, 2.42e-6)])
)
def test_greedy_is_as_good_as_known_on_the_cpu_data(s: int, box_scale: float, known: float) -> None:
    # The paper's table 2 has 3.02e-4, 2.62e-5 and 3.08e-6. Rounding alone decides which of its minima a search ends in,
    # and with it all later ones: the end values spread as RESULTS.md tells.
    one, three = (cpu(s, box_scale, kind="greedy_adaptive", **more).report for more in ({"starts": 1}, {}))
    assert one is not None
    assert three is not None
    assert 0.3 * known < one["objective_end"] < 2 * known
    assert 0.3 * known < three["objective_end"] < 1.1 * known


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("d", [3, 5, 21])
def test_each_point_lowers_the_discrepancy_of_those_before_more_than_the_bases_would(name: str, d: int) -> None:
    kernel, box, _, _ = example(name, 1, d)
    its_kernel = {"kind": name, "length_scale": kernel.scales(d).tolist()}
    made, base = (
        built(input_dim=d, kernel=its_kernel, sampler=over, s=16).arrays["frequencies"]
        for over in ({"kind": "greedy_adaptive", "base": HALTON, "box": box.tolist(), "box_scale": 1.0}, HALTON)
    )
    measure = BoxDiscrepancy(kernel, box)
    for t in range(16):
        found = measure.evaluate(made[: t + 1])
        assert found <= measure.evaluate(np.concatenate([made[:t], base[t : t + 1]])) + 1e-15
        # A minimum: small steps in units of the law do not go down by more than the tolerance.
        for step in np.random.default_rng(t).normal(scale=1e-3, size=(5, d)) / kernel.scales(d):
            assert measure.evaluate(np.concatenate([made[:t], made[t : t + 1] + step])) > found - 2e-5
