"""The one-dimensional integrals, in every corner of b/σ and bw, against mpmath."""

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.discrepancy.box_discrepancy import expansion, integrate
from service_tests.cases import each, with_nightly
from service_tests.core.specs import PRODUCT_KERNELS, kind, product_kernel

KINDS = [kind(model) for model in PRODUCT_KERNELS]
RATIOS = (1e-4, 0.03, 0.69, 0.99, 1.01, 2.0, 3.3, 7.9, 15.0, 40.0, 1e3, 1e4)
PHASES = (0.0, 1e-9, 0.004, 0.3, 3.0, 31.7, 64.1, 1e3, 1e6, 1e10)
TOLERANCE = 2e-15

PHI: dict[str, Callable[[Any], Any]] = {
    "gaussian": lambda u: mp.exp(-u * u / 2),
    "laplacian": lambda u: mp.exp(-u),
    "cauchy": lambda u: 1 / (1 + u * u),
}


def computed(name: str, ratio: float, phases: tuple[float, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """g and its slope at every phase."""
    panels, _ = expansion(product_kernel(name, 1.0), np.array([ratio]))
    z = np.array(phases)[:, None]
    g, slopes = np.empty_like(z), np.empty_like(z)
    integrate(panels, z, g, slopes)
    return g[:, 0], slopes[:, 0]


def by_quadrature(name: str, ratio: float, phase: float) -> tuple[float, float]:
    """Tanh-sinh on pieces on which neither φ nor the cosine does much."""
    cuts = [0.0, *(c / ratio for c in (0.5, 1, 2, 4, 8, 16, 32, 64, 512, 4096) if c < ratio)]
    ends = sorted({*cuts, *np.linspace(0, 1, 2 + int(phase / 6)).tolist()})
    phi = PHI[name]
    with mp.workdps(20):
        g = mp.quad(lambda t: phi(ratio * t) * mp.cos(phase * t), ends)
        slope = -mp.quad(lambda t: t * phi(ratio * t) * mp.sin(phase * t), ends)
    return float(g), float(slope)


def laplacian(ratio: float, phase: float) -> tuple[float, float]:
    """(e^q − 1)/q, q = −r + iz."""
    with mp.workdps(60):
        q = mp.mpc(-ratio, phase)
        power = mp.exp(q)
        return float(mp.re((power - 1) / q)), float(mp.re(1j * (power / q - (power - 1) / q**2)))


def cauchy(ratio: float, phase: float) -> tuple[float, float]:
    """The integral to infinity less that from r on, an exponential integral by partial fractions."""
    r, z = mp.mpf(ratio), mp.mpf(phase)
    y = z / r

    def scaled(q: mp.mpc) -> mp.mpc:
        if abs(q) > 300:
            return sum((-1) ** k * mp.factorial(k) / q ** (k + 1) for k in range(60))
        return mp.exp(q) * mp.e1(q)

    with mp.workdps(400):
        below, above, turn = scaled(mp.mpc(-y, -z)), scaled(mp.mpc(y, -z)), mp.expj(z)
        g = (mp.pi / 2 * mp.exp(-y) - mp.re(turn * (below - above) / 2j)) / r
        slope = -(mp.pi / 2 * mp.exp(-y) - mp.im(turn * (below + above) / 2)) / r**2
        return float(g), float(slope)


def gaussian_ends(ratio: float, phase: float) -> tuple[float, float]:
    """Integration by parts to the 40th derivative, for phases far above r."""
    with mp.workdps(60):
        a, z = mp.mpf(ratio) / mp.sqrt(2), mp.mpf(phase)
        derivatives = [
            [(-a) ** k * mp.hermite(k, a * end) * mp.exp(-((a * end) ** 2)) for k in range(41)] for end in (0, 1)
        ]
        g, moment = mp.mpc(0), mp.mpc(0)
        for k in range(41):
            at_0, at_1 = derivatives[0][k], derivatives[1][k]
            before_0, before_1 = (k * derivatives[end][k - 1] if k else 0 for end in (0, 1))
            step = (-1) ** k / (1j * z) ** (k + 1)
            g += step * (at_1 * mp.expj(z) - at_0)
            moment += step * ((at_1 + before_1) * mp.expj(z) - before_0)
        return float(mp.re(g)), float(-mp.im(moment))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("ratio", with_nightly(RATIOS[::2], RATIOS[1::2]))
def test_small_phases_equal_quadrature(name: str, ratio: float) -> None:
    phases = tuple(z for z in PHASES if z < 50)
    expected = np.array([by_quadrature(name, ratio, z) for z in phases]).T
    np.testing.assert_allclose(computed(name, ratio, phases), expected, rtol=0, atol=TOLERANCE)


@each("ratio", RATIOS)
@each("name", KINDS)
def test_large_phases_equal_closed_forms(name: str, ratio: float) -> None:
    closed = {"laplacian": laplacian, "cauchy": cauchy, "gaussian": gaussian_ends}[name]
    phases = tuple(z for z in PHASES if z > (50 if name != "gaussian" else 50 * max(1, ratio)))
    expected = np.array([closed(ratio, z) for z in phases]).T
    np.testing.assert_allclose(computed(name, ratio, phases), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", KINDS)
def test_the_energy_equals_quadrature(name: str) -> None:
    _, logs = expansion(product_kernel(name, 1.0), np.array(RATIOS))
    phi = PHI[name]
    for ratio, log in zip(RATIOS, logs, strict=True):
        ends = [c for c in (0, 0.5, 1, 2, 4, 8, 16, 64, 512, 4096) if c < ratio] + [ratio]
        exact = mp.log(mp.quad(lambda u: phi(u) ** 2, ends) / ratio)
        assert abs(log - float(exact)) < 1e-14
