"""Minimisation on functions whose minimum is known."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from app.core.progress import Pause, Progress, no_pause
from app.core.samplers.lbfgs import minimised
from service_tests.core.interrupted import Interrupted, WatchedWork

START = np.array([-1.2, 1.0, -0.5, 2.0, 0.3])


def rosenbrock(x: Any, pause: Pause) -> tuple[float, Any]:
    """Least, 1, where all is 1."""
    pause()
    return 1 + float(rosen(x)), rosen_der(x)


def quadratic(x: Any, pause: Pause) -> tuple[float, Any]:
    """Least, 2, at 1, 2, 3, …; one direction is a thousand times as steep as another."""
    del pause
    steepness = np.logspace(0, 3, len(x))
    away = x - np.arange(1, len(x) + 1)
    return 2 + float(steepness @ away**2), 2 * steepness * away


def test_the_minimum_is_found_and_no_step_goes_up() -> None:
    watched = WatchedWork()
    found, _ = minimised(rosenbrock, START, 200, watched)
    np.testing.assert_allclose(found, 1, atol=1e-5)
    assert rosenbrock(found, no_pause)[0] == pytest.approx(1, abs=1e-9)
    steps, ofs, values = zip(*watched.told, strict=True)
    assert list(steps) == list(range(1, len(steps) + 1))
    assert set(ofs) == {200}
    assert list(values) == sorted(values, reverse=True)


def test_a_badly_scaled_quadratic_takes_fewer_steps_than_steepest_descent_would() -> None:
    found, _ = minimised(quadratic, np.zeros(30), 100, Progress())
    # That shrinks the distance by 0.998 a step.
    np.testing.assert_allclose(found, np.arange(1, 31), atol=0.02)


def test_no_more_steps_are_taken_than_asked_and_none_from_a_minimum() -> None:
    watched = WatchedWork()
    minimised(rosenbrock, START, 3, watched)
    assert len(watched.told) == 3
    stays, _ = minimised(rosenbrock, np.ones(5), 10, Progress())
    assert (stays == 1).all()


@pytest.mark.parametrize("most", [1, 2, 7, 40])
def test_a_minimisation_that_is_resumed_gives_the_same_bits(most: int) -> None:
    undisturbed, state = minimised(rosenbrock, START, 50, Progress())
    ended = WatchedWork(most=most)
    with pytest.raises(Interrupted):
        minimised(rosenbrock, START, 50, ended)
    for left in (ended.states[-1], state()):
        again, _ = minimised(rosenbrock, START, 50, WatchedWork(left))
        assert again.tobytes() == undisturbed.tobytes()
