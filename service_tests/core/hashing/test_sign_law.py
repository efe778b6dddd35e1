"""How often signed codes differ, against the series of Raginsky and Lazebnik summed term by term."""

from typing import Any

import numpy as np
import pytest

from app.core.hashing.signed_codes import UNRELATED, sign_law
from app.core.kernels.base import ShiftInvariantKernel
from service_tests.cases import each
from service_tests.core.specs import kernel

KERNELS: dict[str, Any] = {
    "gaussian": {"kind": "gaussian", "length_scale": 1.0},
    "laplacian": {"kind": "laplacian", "length_scale": 1.0},
    **{f"matern {nu}": {"kind": "matern", "nu": nu, "length_scale": 1.0} for nu in (0.1, 1.5, 2.5, 300.0)},
}
DISTANCES = np.array([1e-6, 1e-3, 0.05, 0.2, 0.7, 1.5, 3.0, 6.0])


def profile(fields: Any) -> ShiftInvariantKernel:
    found = kernel(**fields).profile()
    assert isinstance(found, ShiftInvariantKernel)
    return found


def at(of: ShiftInvariantKernel, distances: Any) -> Any:
    return of.gram(np.zeros((1, 1)), np.reshape(distances, (-1, 1))).reshape(np.shape(distances))


def summed(of: ShiftInvariantKernel, distance: float, terms: int = 200_000) -> float:
    """The series, with what is behind its last term taken for kernels of 0; p is off by less than k(200,000 r)/4e5."""
    m = np.arange(1, terms + 1)
    total = ((1 - at(of, m * distance)) / (4.0 * m**2 - 1)).sum() + 1 / (2 * (2 * terms + 1))
    return float(8 / np.pi**2 * total)


@pytest.mark.parametrize("name", KERNELS)
def test_rates_are_the_series(name: str) -> None:
    of = profile(KERNELS[name])
    law = sign_law(of)
    near = DISTANCES >= 0.05  # nearer, 200,000 terms are too few
    wanted = [summed(of, distance) for distance in DISTANCES[near]]
    np.testing.assert_allclose(law.rates_at(DISTANCES)[near], wanted, rtol=1e-6)
    far = DISTANCES[1:]  # the kernel of the first has too few digits
    np.testing.assert_allclose(law.rates(at(of, far)), law.rates_at(far), rtol=1e-5)


def test_rates_are_those_that_were_checked_by_two_million_draws() -> None:
    """In five dimensions, by another implementation."""
    found = sign_law(profile(KERNELS["gaussian"])).rates_at(np.array([0.2, 0.7, 1.5, 3.0]))
    np.testing.assert_allclose(found, [0.0507, 0.1703, 0.3169, 0.4023], atol=4e-4)
    assert pytest.approx(0.405, abs=5e-4) == UNRELATED


@each("name", KERNELS)
def test_the_law_is_turned_around(name: str) -> None:
    law = sign_law(profile(KERNELS[name]))
    kernels = np.array([1e-8, 1e-6, 0.01, 0.1, 0.5, 0.9, 0.99, 1 - 1e-6, 1 - 1e-12])
    np.testing.assert_allclose(law.kernels(law.rates(kernels)), kernels, rtol=1e-6)
    np.testing.assert_allclose(1 - law.kernels(law.rates(kernels))[5:], 1 - kernels[5:], rtol=1e-3)


@each("name", KERNELS)
def test_rates_above_the_most_are_kernels_below_0_on_the_line_that_the_law_comes_in_on(name: str) -> None:
    law = sign_law(profile(KERNELS[name]))
    beyond = UNRELATED + np.array([1e-9, 1e-3, 0.02, 1 - UNRELATED])
    found = law.kernels(beyond)
    np.testing.assert_allclose(found, (UNRELATED - beyond) * 3 * np.pi**2 / 8, rtol=1e-3)
    assert law.kernels(np.array([0.0]))[0] == 1
    assert law.kernels(np.array([UNRELATED]))[0] == pytest.approx(0, abs=1e-9)
