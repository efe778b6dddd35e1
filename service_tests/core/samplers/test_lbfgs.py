"""Minimisation on functions whose minimum is known."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from app.core.progress import Pause, no_pause
from app.core.samplers.global_adaptive import minimise
from service_tests.core.interrupted import WatchedWork

START = np.array([-1.2, 1.0, -0.5, 2.0, 0.3])


def rosenbrock(x: Any, pause: Pause) -> tuple[float, Any]:
    """Least, 1, where all is 1."""
    pause()
    return 1 + float(rosen(x)), rosen_der(x)


def test_the_minimum_is_found_and_no_step_goes_up() -> None:
    watched = WatchedWork()
    found, _ = minimise(rosenbrock, START, 200, watched)
    np.testing.assert_allclose(found, 1, atol=1e-5)
    assert rosenbrock(found, no_pause)[0] == pytest.approx(1, abs=1e-9)
    steps, ofs, values = zip(*watched.told, strict=True)
    assert list(steps) == list(range(1, len(steps) + 1))
    assert set(ofs) == {200}
    assert list(values) == sorted(values, reverse=True)
