"""The names of the Gaussian kernel's scale, and the law of its lengths."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from app.core.errors import InvalidInput
from service_tests.core.specs import kernel, spec

SCALES: list[Any] = [0.5, [0.25, 1.0, 4.0, 3.0]]


@pytest.mark.parametrize("scale", SCALES, ids=["number", "list"])
def test_gamma_is_half_the_inverse_square_of_length_scale(scale: Any) -> None:
    gamma = (1 / (2 * np.square(scale))).tolist()
    np.testing.assert_allclose(kernel(kind="gaussian", gamma=gamma).length_scale, scale, rtol=1e-15)
    x, y = np.random.default_rng(1).normal(size=(2, 5, 4))
    expected = np.exp(-np.sum(np.broadcast_to(gamma, 4) * (x[:, None] - y[None]) ** 2, axis=2))
    np.testing.assert_allclose(kernel(kind="gaussian", gamma=gamma).gram(x, y), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["sigma", "gamma"])
def test_whichever_name_was_given_length_scale_is_echoed(name: str) -> None:
    given = {"length_scale": 0.5, "sigma": 0.5, "gamma": 2.0}
    aliased, plain = (spec(kernel={"kind": "gaussian", alias: given[alias]}) for alias in (name, "length_scale"))
    assert aliased.canonical() == plain.canonical()
    assert '"kernel":{"length_scale":0.5,"kind":"gaussian"}' in aliased.canonical()


@pytest.mark.parametrize(
    ("fields", "came"),
    [
        ({}, "no scale"),
        ({"sigma": 1.0, "gamma": 1.0}, "gamma and sigma"),
        ({"length_scale": 1.0, "sigma": 1.0}, "length_scale and sigma"),
        ({"length_scale": 1.0, "gamma": 0.5, "sigma": 1.0}, "gamma and length_scale and sigma"),
        ({"sigma": None}, "no scale"),
    ],
)
def test_two_scales_or_none_are_refused_at_the_kernel(fields: dict[str, Any], came: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        kernel(kind="gaussian", **fields)
    assert caught.value.pointer == "/kernel"
    assert caught.value.detail == f"expected exactly one of length_scale, sigma, gamma, got {came}"


@pytest.mark.parametrize("dim", [1, 8, 1024, 1 << 20])
def test_lengths_of_frequencies_at_scale_one_have_the_chi_law(dim: int) -> None:
    uniforms = np.array([1e-12, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-12])
    found = kernel(kind="gaussian", length_scale=3.0).radial_quantile(uniforms, dim)
    np.testing.assert_allclose(found, stats.chi(dim).ppf(uniforms), rtol=1e-12)
