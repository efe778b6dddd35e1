"""The Cauchy kernel is the product one."""

import numpy as np

from service_tests.core.specs import product_kernel


def test_the_kernel_is_a_product_and_not_a_function_of_the_distance() -> None:
    corner, axis = np.array([[1.0, 1.0, 1.0]]), np.array([[np.sqrt(3), 0.0, 0.0]])
    kernel, origin = product_kernel("cauchy", 1.0), np.zeros((1, 3))
    assert np.isclose(kernel.gram(corner, origin).item(), 1 / 8)
    assert np.isclose(kernel.gram(axis, origin).item(), 1 / 4)


def test_its_frequencies_have_twice_the_variance_of_the_gaussian_kernel() -> None:
    deviations = product_kernel("cauchy", 2.0).frequency_deviations(3)
    assert deviations is not None
    np.testing.assert_allclose(deviations, np.full(3, np.sqrt(2) / 2))
