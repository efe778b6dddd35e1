"""The picture of simulated variances beside their closed forms."""

from app.core.diagnostics.variance import Variance
from app.core.drawing import Curve
from service_tests.core.combinations import (
    rows,
)
from service_tests.core.specs import fourier

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
