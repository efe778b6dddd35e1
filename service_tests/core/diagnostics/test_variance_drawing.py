"""The picture of simulated variances beside their closed forms."""

import numpy as np

from app.core.diagnostics.variance import Variance
from app.core.diagnostics.variance_drawing import MOST_PAIRS
from app.core.drawing import Curve
from app.pictures.figures import svg
from service_tests.core.combinations import (
    rows,
)
from service_tests.core.specs import fourier, hashing

# One standard error of a variance of so many is 8 and 4.5 % of it, where the errors are normal.


def test_the_picture_has_the_simulated_variance_and_every_known_closed_form_by_kernel() -> None:
    made = fourier(s=16)
    x, y = rows(5, 1), rows(5, 2)
    finding = Variance(repeats=3).run(made, {"x": x, "y": y})
    assert finding.drawing is not None
    ((panel,),) = finding.drawing.rows
    pairs = sorted(finding.answer["pairs"], key=lambda pair: pair["exact"])
    simulated, *closed = panel.marks
    assert isinstance(simulated, Curve)
    assert simulated.x == [pair["exact"] for pair in pairs]
    assert simulated.y == [pair["empirical"]["variance"] for pair in pairs]
    assert simulated.deviations == [pair["empirical"]["standard_error"] for pair in pairs]
    forms = {name: value for name, value in pairs[0]["closed_forms"].items() if value is not None}
    drawn = {curve.label: curve.y[0] for curve in closed if isinstance(curve, Curve)}
    own = finding.answer["own"]
    assert drawn == {f"closed form {name}" + ", this map's" * (name == own): value for name, value in forms.items()}
    assert own == "monte_carlo"


def test_the_picture_of_hashes_has_the_rbf_kernel_too() -> None:
    finding = Variance(repeats=3, correlations=(0.2, 0.9), gamma=2.0).run(hashing(), {})
    assert finding.drawing is not None
    labels = [curve.label for curve in finding.drawing.rows[0][0].marks if isinstance(curve, Curve)]
    assert labels == [
        "3 maps, ± standard error",
        "RBF kernel of 3 maps, ± standard error",
        "closed form gcws, this map's",
        "closed form rbf_from_gcws",
    ]
    simulated, of_rbf, closed, closed_of_rbf = finding.drawing.rows[0][0].marks
    assert isinstance(simulated, Curve)
    assert (simulated.colour, of_rbf.colour) == (closed.colour, closed_of_rbf.colour)  # type: ignore[union-attr]


def test_of_many_pairs_some_are_drawn_the_least_and_the_largest_kernel_among_them() -> None:
    correlations = tuple(np.linspace(0, 1, 1000).tolist())
    finding = Variance(repeats=2, correlations=correlations).run(hashing(), {})
    assert finding.drawing is not None
    for mark in finding.drawing.rows[0][0].marks:
        assert isinstance(mark, Curve)
        assert len(mark.x) <= MOST_PAIRS
        kernels = sorted(pair["exact"] for pair in finding.answer["pairs"])
        assert (mark.x[0], mark.x[-1]) == (kernels[0], kernels[-1])
    assert len(svg(finding.drawing)) < 150_000
