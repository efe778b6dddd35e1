"""Drawings as SVG: every mark, and errors that are all 0, which no logarithm can show, or some of which are."""

import pytest

from app.core.diagnostics.max_error import MaxErrors, drawing
from app.core.drawing import Curve, Drawing, Histogram, Panel, Points
from app.core.recommendations.answer import Ranking
from app.core.recommendations.answer import drawing as drawing_of_ranking
from app.pictures.svg import svg

SIZES: list[tuple[float, ...]] = [(0.0, 0.0), (0.0, 0.1), (0.0, 1e-300), (0.5, 1e-9), (1e9, 0.0)]


@pytest.mark.parametrize("errors", SIZES)
@pytest.mark.parametrize("deviation", [0.0, 0.2])
def test_recommendations(errors: tuple[float, ...], deviation: float) -> None:
    spec = {"sampler": {"kind": "gcws"}}
    found = Ranking(
        rows=2,
        reported_rows=1,
        learned_rows=None,
        target_reached=None,
        ranked=[
            {
                "n_output": 8 << i,
                "error_mean": error,
                "error_sd": deviation * error,
                "choosing_error": error,
                "score_mean": None,
                "score_sd": None,
                "choosing_score": None,
                "maps": 3,
                "tied_with_best": None,
                "spec": spec,
                "bytes": 0,
                "seconds_per_1000_rows": 0.0,
            }
            for i, error in enumerate(errors)
        ],
        best=spec,
        skipped=[],
        notes=[],
    )
    assert b"relative Frobenius error" in svg(drawing_of_ranking(found))


@pytest.mark.parametrize("errors", SIZES)
@pytest.mark.parametrize("bound", [None, 0.5])
def test_max_error(errors: tuple[float, ...], bound: float | None) -> None:
    found = MaxErrors(
        form="complex",
        samples=10,
        diameters=[
            {"diameter": 2.0**i, "max": error, "rms": error / 2, "bound": bound} for i, error in enumerate(errors)
        ],
    )
    document = svg(drawing(found))
    assert b"root mean square" in document
    assert (b">bound<" in document) == (bound is not None)


def test_every_mark_has_its_colour_and_every_label_stands_in_the_document() -> None:
    curves = [Curve([1, 2], [1, i], f"curve {i}", deviations=[0.1, 0.2]) for i in range(1, 11)]
    one = svg(
        Drawing([[Panel(curves, "across", "up", title="above", x_scale="log2", y_scale="log", y_top=5)]])
    ).decode()
    for text in ("across", "up", "above", *(f"curve {i}" for i in range(1, 11))):
        assert f">{text}<" in one
    assert one.count("#1f83c9") > one.count("#24915a") > 0, "the ninth curve has the first colour again"
    panels = [[Panel([Histogram([0, 1, 2], [3, 4])], "a", "b"), Panel([Points([0, 1], [1, 0])], "c", "d")]] * 2
    two = svg(Drawing(panels, row_height=3.0)).decode()
    assert "#1f83c9" in two
    assert "#d1650c" in two, "the second row has the second colour"
    assert svg(Drawing(panels, row_height=3.0)).decode() == two
