"""Frequencies moved to a least box discrepancy, all at once or one by one."""

from itertools import pairwise

import numpy as np
import pytest

from app.core.arrays import Matrix
from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.progress import Pause, Progress, no_pause, unpacked
from app.core.samplers import lbfgs
from app.core.samplers.lbfgs import minimised
from service_tests.cases import with_nightly
from service_tests.core.discrepancy.sets import KINDS, example
from service_tests.core.samplers.learned import HALTON, Watched, built, cpu, digest


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


def test_more_starts_are_more_frequencies_of_the_base() -> None:
    over = {"kind": "greedy_adaptive", "base": HALTON, "box": 2.0}
    said, two, three = (digest(built(sampler=over | more, s=12)) for more in ({}, {"starts": 2}, {"starts": 3}))
    assert said == three != two


@pytest.mark.parametrize("box", [1e-300, 1e-9])
def test_rounding_is_no_reason_to_prefer_the_base(box: float) -> None:
    assert built(sampler={"kind": "greedy_adaptive", "box": box}, s=20).warnings == ()


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
        found = measure.normalized(made[: t + 1])
        assert found <= measure.normalized(np.concatenate([made[:t], base[t : t + 1]])) + 1e-15
        # A minimum: small steps in units of the law do not go down by more than the tolerance.
        for step in np.random.default_rng(t).normal(scale=1e-3, size=(5, d)) / kernel.scales(d):
            assert measure.normalized(np.concatenate([made[:t], made[t : t + 1] + step])) > found - 2e-5


@pytest.mark.parametrize("starts", [1, 3])
def test_a_beginning_of_a_greedy_set_is_the_smaller_greedy_set_but_for_the_last_searches(starts: int) -> None:
    over = {"kind": "greedy_adaptive", "base": HALTON, "box": 2.0, "starts": starts}
    short, long = (built(sampler=over, s=s).arrays["frequencies"] for s in (20, 40))
    assert (long[: 21 - starts] == short[: 21 - starts]).all()


@pytest.mark.parametrize("d", [3, 10, 60])
def test_minimisation_finds_the_minimum_of_a_quadratic_and_of_a_curved_valley(d: int) -> None:
    rng = np.random.default_rng(d)
    diagonal, target = np.geomspace(1, 100, d), rng.normal(size=d)

    def quadratic(x: Matrix, _: Pause) -> tuple[float, Matrix]:
        return float(diagonal @ (x - target) ** 2) / 2 + 1, diagonal * (x - target)

    found, _ = minimised(quadratic, np.zeros(d), 500, Progress())
    np.testing.assert_allclose(found, target, atol=1e-6)
    assert quadratic(found, no_pause)[0] == pytest.approx(1, abs=1e-12)

    def valley(x: Matrix, _: Pause) -> tuple[float, Matrix]:
        lows, highs = x[:-1], x[1:]
        slope = np.zeros(d)
        slope[:-1] = -400 * lows * (highs - lows**2) - 2 * (1 - lows)
        slope[1:] += 200 * (highs - lows**2)
        return float((100 * (highs - lows**2) ** 2 + (1 - lows) ** 2).sum()), slope

    watched = Watched()
    found, _ = minimised(valley, np.full(d, 0.5), 2000, watched)
    np.testing.assert_allclose(found, 1, atol=1e-4)
    values = [reached for _, _, reached in watched.told if reached is not None]
    assert all(later < earlier for earlier, later in pairwise(values))
    assert len(watched.states) == len(watched.told), "one state after each step"


def test_the_memory_of_many_numbers_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    d = 50
    monkeypatch.setattr(lbfgs, "_MEMORY_BYTES", 2 * 3 * 8 * d)
    watched = Watched()

    def bowl(x: Matrix, _: Pause) -> tuple[float, Matrix]:
        weights = np.arange(1.0, d + 1)
        return float(weights @ (x - 1) ** 2) + 1, 2 * weights * (x - 1)

    found, *_ = minimised(bowl, np.zeros(d), 200, watched)
    np.testing.assert_allclose(found, 1, atol=1e-5)
    assert [len(unpacked(state)["moves"]) for state in watched.states[:6]] == [1, 2, 3, 3, 3, 3]


def test_minimisation_stays_where_there_is_nothing_to_gain() -> None:
    start = np.array([1.0, 2.0])
    for value in (0.0, -1e-18, 3.0):
        found, _ = minimised(lambda x, _, value=value: (value, 0 * x), start, 10, Progress())  # type: ignore[misc]
        assert (found == start).all()
