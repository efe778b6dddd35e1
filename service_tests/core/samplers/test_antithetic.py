"""Pairs of frequencies w and −w, and what they mend in the complex form."""

from typing import Any

import numpy as np
import pytest

from service_tests.core.specs import fourier, kernel, refusal, sampler, spec

KERNELS: list[dict[str, Any]] = [
    {"kind": "gaussian", "length_scale": [0.5, 1.0, 2.0]},
    {"kind": "laplacian", "length_scale": 1.0},
    {"kind": "cauchy", "length_scale": 1.0},
    {"kind": "matern", "length_scale": 1.0, "nu": 1.5},
]
every_kernel = pytest.mark.parametrize("fields", KERNELS, ids=lambda fields: str(fields["kind"]))


@every_kernel
def test_the_second_half_is_the_first_mirrored(fields: dict[str, Any]) -> None:
    drawn = sampler(kind="antithetic").frequency_set(kernel(**fields), 40, 3, np.random.default_rng(1))
    assert drawn.frequencies.shape == (40, 3)
    assert (drawn.frequencies[20:] == -drawn.frequencies[:20]).all()
    assert len(np.unique(np.abs(drawn.frequencies), axis=0)) == 20
    assert (drawn.weights == 1 / 40).all()


@every_kernel
def test_the_complex_form_has_no_imaginary_part(fields: dict[str, Any]) -> None:
    x, y = np.random.default_rng(2).normal(size=(2, 6, 3))
    members = {"input_dim": 3, "kernel": fields, "form": "complex", "dtype": "float64"}
    assert np.abs(fourier(sampler={"kind": "antithetic"}, **members).gram(x, y).imag).max() < 1e-15
    assert np.abs(fourier(sampler={"kind": "monte_carlo"}, **members).gram(x, y).imag).max() > 0.01


@pytest.mark.parametrize("s", [1, 7, 63])
def test_an_odd_number_is_refused_and_the_next_one_named(s: int) -> None:
    error = refusal(s=s, sampler={"kind": "antithetic"})
    assert error.pointer == "/s"
    assert f"come in pairs; s = {s}, take {s + 1}" in error.detail
    assert spec(s=s + 1, sampler={"kind": "antithetic"}).s == s + 1
