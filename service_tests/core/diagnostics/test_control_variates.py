"""Corollary 1 and equation 10 of the moment-matching paper, of control variates computed from maps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.core.diagnostics.error_matrix import ControlVariates, Estimator
from app.core.errors import InvalidInput
from app.core.maps.terms import Form
from service_tests.cases import each, few_and_many
from service_tests.core.specs import fourier

S, D = 1000, 3
LETTERS = Path(__file__).parents[3] / "examples" / "letters.npy"
NORMAL: dict[str, Any] = {
    "gaussian": {"kind": "gaussian", "length_scale": [0.5, 1.0, 2.0]},
    "correlation_rbf": {"kind": "correlation_rbf", "gamma": 2.0},
}
forms = pytest.mark.parametrize("form", [form.value for form in Form])


def rows_at(kind: str) -> tuple[Any, Any]:
    """Rows y at several distances of one x: t = δᵀΣδ from 0.1 to 4."""
    t = np.array([0.1, 0.5, 1.0, 2.0, 4.0])
    if kind == "gaussian":
        direction = np.array([1.0, 2.0, -2.0])
        direction /= np.linalg.norm(direction / NORMAL[kind]["length_scale"])
        return np.array([[0.3, -0.2, 0.1]]), np.array([0.3, -0.2, 0.1]) - np.sqrt(t)[:, None] * direction
    cosines = 1 - t / 2 / NORMAL[kind]["gamma"]
    return np.eye(1, D), np.stack([cosines, np.sqrt(1 - cosines**2), np.zeros(5)], axis=1)


@forms
@pytest.mark.parametrize("kind", list(NORMAL))
@pytest.mark.parametrize("repeats", few_and_many(300, 800))
def test_variances_are_those_of_corollary_1(kind: str, form: str, repeats: int) -> None:
    x, y = rows_at(kind)
    made = [
        fourier(input_dim=D, kernel=NORMAL[kind], s=S, seed=seed, form=form, dtype="float64") for seed in range(repeats)
    ]
    exact = made[0].exact_gram(x, y)
    closed = made[0].closed_forms(x, y).by_name
    t = -2 * np.log(exact[0])
    if form == "complex":
        # As the paper has it.
        monte_carlo = (1 - np.exp(-t)) / S
        first, second = (t**power * np.exp(-t) / (1 - np.exp(-t)) for power in (1, 2))
        for name, variance in (("cv1", 1 - first), ("cv2", 1 - first - second / 2)):
            np.testing.assert_allclose(closed[name], monte_carlo * variance, rtol=1e-10)
    squares = {estimator: np.empty((repeats, 5)) for estimator in Estimator}
    for repeat, one in enumerate(made):
        approximate = one.gram(x, y)
        controls = ControlVariates(one)
        for estimator in Estimator:
            estimates = controls.estimate(estimator, x, y, exact, approximate)
            squares[estimator][repeat] = np.abs(estimates - exact)[0] ** 2
    for estimator, found in squares.items():
        name = "monte_carlo" if estimator is Estimator.map else estimator.value
        wanted = closed[name]
        # One standard error of a mean of 800 squares is 3 to 7 % of it; of 300, 5 to 11 %.
        error = found.std(axis=0) / np.sqrt(repeats)
        assert (error < 1.93 / np.sqrt(repeats) * wanted).all()
        assert (np.abs(found.mean(axis=0) - wanted) < 4 * error).all(), estimator
    gain = squares[Estimator.cv2].mean(axis=0) / squares[Estimator.map].mean(axis=0)
    assert (gain[:3] < 0.95).all() or form == "phase"
    assert gain[2] < 0.95
    if form != "complex":
        np.testing.assert_array_equal(squares[Estimator.cv1], squares[Estimator.map])


@forms
def test_control_variates_are_equation_10_pair_by_pair(form: str) -> None:
    made = fourier(input_dim=D, kernel=NORMAL["gaussian"], s=50, form=form, dtype="float64")
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((4, D)), rng.standard_normal((3, D))
    exact, approximate = made.exact_gram(x, y), made.gram(x, y)
    covariance = np.diag(1 / np.square(NORMAL["gaussian"]["length_scale"]))
    w = made.arrays["frequencies"]
    for i, j in np.ndindex(4, 3):
        c = x[i] - y[j]
        first = np.mean(-1j * w @ c) if form == "complex" else 0.0
        second = np.mean(-0.5 * (w @ c) ** 2 + 0.5 * c @ covariance @ c)
        wanted = {"map": 0, "cv1": first, "cv2": first + second}
        for estimator in Estimator:
            found = ControlVariates(made).estimate(estimator, x, y, exact, approximate)
            assert found[i, j] == pytest.approx(approximate[i, j] - exact[i, j] * wanted[estimator.value], abs=1e-13)


@each(
    ("members", "named"),
    [
        ({"kernel": {"kind": "laplacian", "length_scale": 1.0}}, "laplacian"),
        ({"kernel": {"kind": "cauchy", "length_scale": 1.0}}, "cauchy"),
        ({"kernel": {"kind": "matern", "length_scale": 1.0, "nu": 2.5}}, "matern"),
        ({"kernel": {"kind": "anova", "length_scale": 1.0, "subsets": [[0, 1], [2]]}}, "anova"),
        ({"kernel": {"kind": "anova", "length_scale": 1.0, "subsets": [[0, 1]]}}, "anova"),
        ({"normalize": True}, "normalize"),
    ],
)
def test_where_they_have_no_meaning_they_are_refused(members: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named) as caught:
        ControlVariates(fourier(**members))
    assert caught.value.pointer == "/estimators"
