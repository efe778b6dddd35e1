"""Greatest errors over balls, and theorems 2 and 3 of the quadrature paper."""

from math import e
from typing import Any

import numpy as np
import pytest

from app.core.diagnostics.max_error import DiameterError, greatest_error_bound
from app.core.maps import make_map
from app.core.maps.terms import Form
from service_tests.cases import covered, each
from service_tests.core.combinations import FIELDS, D, weight_sum, with_frequencies
from service_tests.core.diagnostics.measure import max_errors
from service_tests.core.specs import KERNELS, fourier, spec

FOURIER = [(name, variant) for name in sorted(with_frequencies(KERNELS)) for variant in range(len(FIELDS[name](D)))]
"""Kernels by their kind and the number of their fields among those that are tried."""
FIGURE_1: dict[str, dict[str, Any]] = {
    "polynomially_exact": {"sampler": {"kind": "polynomially_exact", "degree": 2}, "s": None},
    "monte_carlo": {"s": 1000},
    "moment_matching": {"sampler": {"kind": "moment_matching"}, "s": 1000},
    "sparse_grid": {"sampler": {"kind": "sparse_grid", "level": 2}, "s": None},
}
# Max error in 25 dimensions at M = .1, 1, 2, 4 over 1e5 points: an independent computation's figures.
MEASURED = {
    "polynomially_exact": (8.6e-6, 0.043, 0.163, 0.23),
    "monte_carlo": (9.5e-4, 0.061, 0.092, 0.10),
    "moment_matching": (3.7e-6, 0.018, 0.090, 0.11),
    "sparse_grid": (1.7e-8, 0.015, 0.65, 13.5),
}


def errors(made: Any, diameters: list[float], **options: Any) -> list[DiameterError]:
    return max_errors(made, diameters, **options)["diameters"]


@pytest.mark.parametrize("name", FIGURE_1)
def test_figure_1_comes_out(name: str) -> None:
    made = fourier(
        **{"input_dim": 25, "kernel": {"kind": "gaussian", "length_scale": 1.0}, "dtype": "float64"} | FIGURE_1[name]
    )
    for of, wanted in zip(errors(made, [0.1, 1, 2, 4], samples=4000), MEASURED[name], strict=True):
        # Another random set over fewer points: the same size.
        assert 0.6 * wanted < of["max"] < 1.4 * wanted
        assert 0.05 * of["max"] < of["rms"] < of["max"]


@pytest.mark.parametrize(
    ("name", "variant", "form", "normalize"),
    covered([(*which, form.value, normalize) for which in FOURIER for form in Form for normalize in (False, True)]),
)
def test_errors_are_those_of_features_of_rows_so_far_apart(name: str, variant: int, form: str, normalize: bool) -> None:
    its_kernel = {"kind": name} | FIELDS[name](D)[variant]
    made = fourier(kernel=its_kernel, form=form, normalize=normalize, dtype="float64", s=128)
    found = max_errors(made, [2.0, 0.5], samples=3000, seed=1)
    assert found["form"] == ("complex" if form == "complex" else "cos_sin")
    # Lags of another seed; the same law, so the same RMS up to a few per cent.
    rng = np.random.default_rng(99)
    lags = rng.standard_normal((3000, 4))
    lags *= rng.random((3000, 1)) ** (1 / 4) / np.linalg.norm(lags, axis=1, keepdims=True)
    weights, frequencies = made.arrays["weights"], made.arrays["frequencies"]
    assert weights.sum() == pytest.approx(weight_sum(its_kernel))
    scale = weights.sum() if normalize else 1
    for diameter, of in zip([2.0, 0.5], found["diameters"], strict=True):
        phases = diameter * lags @ frequencies.T
        estimate = (np.exp(-1j * phases) if form == "complex" else np.cos(phases)) @ weights
        exact = made.kernel.gram(diameter * lags, np.zeros((1, 4)))[:, 0]
        error = np.abs(estimate - exact) / scale
        assert of["diameter"] == diameter
        assert of["rms"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=0.08)
        assert 0.6 * error.max() < of["max"] < 1.5 * error.max()


RULES: list[dict[str, Any]] = [
    {"sampler": {"kind": "polynomially_exact", "degree": degree}, "input_dim": 3} for degree in (2, 3, 4, 6)
] + [{"sampler": {"kind": "dense_grid", "points_per_dim": points}, "input_dim": 3} for points in (2, 5, 9)]


@each("scale", [1.0, [0.5, 2.0, 4.0]])
@each("rule", RULES)
def test_rules_with_positive_weights_keep_theorem_2(rule: dict[str, Any], scale: Any) -> None:
    made = fourier(**rule, s=None, dtype="float64", kernel={"kind": "gaussian", "length_scale": scale})
    sampler = rule["sampler"]
    degree = sampler["degree"] // 2 * 2 if "degree" in sampler else 2 * sampler["points_per_dim"] - 2
    b = 1 / np.min(scale)
    for of in errors(made, [0.05, 0.2, 0.5, 1.0], samples=2000):
        wanted = 3 * (e * (b * of["diameter"]) ** 2 / degree) ** (degree / 2)
        assert of["bound"] == pytest.approx(wanted, rel=1e-12)
        assert of["max"] < wanted + 1e-13


@pytest.mark.parametrize(("level", "d"), [(2, 3), (4, 3), (3, 5)])
def test_sparse_grids_keep_theorem_3_where_it_speaks(level: int, d: int) -> None:
    made = fourier(
        input_dim=d,
        sampler={"kind": "sparse_grid", "level": level},
        s=None,
        dtype="float64",
        kernel={"kind": "gaussian", "length_scale": [1.0] * (d - 1) + [0.5]},
    )
    limit = float(np.sqrt(level / (24 * e)) / 2)
    inside, outside = errors(made, [0.999 * limit, 1.001 * limit], samples=2000)
    # At the limit 12 e b² M²/A is ½.
    assert inside["bound"] is not None
    assert inside["bound"] == pytest.approx(2**d * (0.5 * 0.999**2) ** level, rel=1e-9)
    assert inside["max"] < inside["bound"]
    assert outside["bound"] is None


@each(
    "members",
    [
        {},
        {"sampler": {"kind": "subsampled_grid", "points_per_dim": 5}},
        {"sampler": {"kind": "sparse_grid", "level": 0}, "s": None},
        {
            "sampler": {"kind": "dense_grid", "points_per_dim": 5},
            "s": None,
            "kernel": {"kind": "anova", "length_scale": 1.0, "subsets": [[0, 1], [2, 3]]},
        },
    ],
)
def test_where_nothing_is_proved_there_is_no_bound(members: dict[str, Any]) -> None:
    assert greatest_error_bound(fourier(**members), 0.1) is None


def test_errors_whose_squares_leave_the_range_have_a_mean_square() -> None:
    kernel = {"kind": "polynomial", "degree": 3}
    landmarks = np.random.default_rng(3).standard_normal((4, 3)).tolist()
    sampler = {"kind": "uploaded_landmarks", "landmarks": landmarks}
    made = make_map(spec(input_dim=3, kernel=kernel, sampler=sampler, s=None, dtype="float64"))
    small, large = errors(made, [1e4, 1e44], samples=300)
    assert large["max"] > 1e200
    assert large["rms"] / large["max"] == pytest.approx(small["rms"] / small["max"], rel=0.01)
