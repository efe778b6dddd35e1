"""The box discrepancy is the mean squared error over the box, and behaves as its theory says."""

import numpy as np
import pytest

from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.errors import InvalidInput
from service_tests.core.discrepancy.sets import CPU_BOX, CPU_SIGMA, KINDS, Matrix, drawn, example
from service_tests.core.specs import kernel, product_kernel, sampler


def squared_error(name: str, scales: Matrix, frequencies: Matrix, weights: Matrix, lags: Matrix) -> Matrix:
    """|k(u) − Σ ξ e^{−iw·u}|² at every lag of (n, d), from formulas of its own."""
    scaled = np.abs(lags) / scales
    exact = {
        "gaussian": lambda: np.exp(-(scaled**2).sum(axis=1) / 2),
        "laplacian": lambda: np.exp(-scaled.sum(axis=1)),
        "cauchy": lambda: (1 / (1 + scaled**2)).prod(axis=1),
    }[name]()
    errors: Matrix = np.abs(exact - np.exp(-1j * lags @ frequencies.T) @ weights) ** 2
    return errors


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_it_equals_an_integral_over_the_box(name: str, d: int, is_weighted: bool) -> None:
    made, box, frequencies, weights = example(name, 6, d)
    frequencies = frequencies.clip(-15, 15)
    x, w = np.polynomial.legendre.leggauss(100)
    # Halves of a side apart: the Laplacian kernel has a kink between them.
    x, w = np.concatenate([x - 1, x + 1]) / 2, np.concatenate([w, w]) / 4
    lags = np.stack([axis.ravel() for axis in np.meshgrid(*(b * x for b in box), indexing="ij")], axis=1)
    masses = w if d == 1 else np.multiply.outer(w, w).ravel()
    xi = weights if is_weighted else np.full(6, 1 / 6)
    error = masses @ squared_error(name, made.scales(d), frequencies, xi, lags)
    found = BoxDiscrepancy(made, box).evaluate(frequencies, weights if is_weighted else None)
    assert abs(found - error) < 1e-12


@pytest.mark.parametrize(("name", "d"), [*zip(KINDS, (1, 5, 21), strict=True)])
def test_independent_draws_have_the_expectation(name: str, d: int) -> None:
    made, box, _, _ = example(name, 1, d)
    measure = BoxDiscrepancy(made, box)
    found = np.array([measure.evaluate(drawn(made, 24, d, seed)) for seed in range(300)])
    expected = measure.measure(drawn(made, 24, d, 0))["expected_monte_carlo"]
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(len(found))


@pytest.mark.parametrize(
    ("part", "s", "known"),
    [
        (1, 100, "4.47e-03"),
        (1, 300, "4.67e-04"),
        (1, 500, "2.01e-04"),
        (0.25, 100, "1.37e-04"),
        (0.25, 300, "8.92e-06"),
    ],
)
def test_golden_values_of_halton_on_the_cpu_data(part: float, s: int, known: str) -> None:
    # An independent plain computation; the paper's table 2 has 3.41e-3, 8.09e-4, 2.39e-4 for the whole box, with a
    # length scale that it does not tell.
    made = product_kernel("gaussian", CPU_SIGMA)
    halton = sampler(kind="halton", scramble="reverse_radix")
    frequencies = made.frequencies(halton.points(s, 21, np.random.default_rng(0)))
    assert f"{BoxDiscrepancy(made, part * CPU_BOX).evaluate(frequencies):.2e}" == known


def test_correlation_rbf_is_the_gaussian_kernel_of_unit_rows() -> None:
    frequencies = np.random.default_rng(3).normal(size=(30, 4))
    box = np.array([2.0, 1.0, 0.5, 2.0])
    found = BoxDiscrepancy(kernel(kind="correlation_rbf", gamma=4.0), box).evaluate(frequencies)
    assert found == BoxDiscrepancy(product_kernel("gaussian", 0.5), box).evaluate(frequencies)


def test_weights_whose_square_is_no_number_are_refused() -> None:
    made, box, frequencies, weights = example("gaussian", 6, 2)
    measured = BoxDiscrepancy(made, box).measure
    assert np.isfinite(measured(frequencies, 1e149 * weights)["normalized"])
    with pytest.raises(InvalidInput, match="errors have the square of that"):
        measured(frequencies, 1e155 * weights)
