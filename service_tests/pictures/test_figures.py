"""Drawings as SVG and PNG: hostile words, sizes, the same bytes again; errors without a logarithm."""

from xml.etree import ElementTree

import numpy as np
import pytest

from app.core.diagnostics.box_discrepancy import BoxErrors
from app.core.diagnostics.box_discrepancy import drawing as drawing_of_box
from app.core.drawing import CELLS, Beyond, Curve, Density, Drawing, Histogram, Panel
from app.pictures.figures import png, svg

SIZES: list[tuple[float, ...]] = [(0.0, 0.0), (0.0, 0.1), (0.0, 1e-300), (0.5, 1e-9), (1e9, 0.0)]
SVG = "{http://www.w3.org/2000/svg}"


def words(picture: bytes) -> list[str]:
    """The texts of an SVG document."""
    return ["".join(text.itertext()) for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]


@pytest.mark.parametrize("errors", [(0.0,), (-1e-18, 0.1), (1e-300, 1e300)])
def test_box_discrepancies_of_any_size_are_drawn_and_those_that_are_rounding_are_counted(
    errors: tuple[float, ...],
) -> None:
    found = BoxErrors(
        box=[1.0] * 9,
        scales=[
            {
                "box_scale": 0.5**i,
                "discrepancy_squared": None,
                "log_discrepancy_squared": None,
                "normalized": error,
                "expected_monte_carlo": 0.25,
                "ratio": None,
            }
            for i, error in enumerate(errors)
        ],
    )
    said = words(svg(drawing_of_box(found)))
    untold = sum(error <= 0 for error in errors)
    assert "box of half widths 1, 1, 1, 1, …" + f"; {untold} too small to tell" * (untold > 0) in said
    assert ("this map" in said) == (untold < len(errors))
    assert "Monte Carlo, expected" in said


def test_the_largest_picture_of_densities_stays_below_150_kilobytes() -> None:
    side = int((CELLS / 3) ** 0.5)
    edges = np.linspace(0, 1, side + 1).tolist()
    # No cell has a neighbour of its shade.
    counts = [[(1, 10, 100, 1000, 10_000)[(i + 2 * j) % 5] for i in range(side)] for j in range(side)]
    panel = Panel([Density(edges, edges, counts, "pairs")], "exact", "estimate", "a title")
    curve = Panel([Histogram(np.arange(62.0).tolist(), [1.0] * 61, "steps")] * 2, "x", "y", "a title", y_scale="log")
    assert 60_000 < len(svg(Drawing([[curve, panel]] * 3))) < 150_000


@pytest.mark.parametrize(
    "hostile", ["<script>alert(1)</script>", "\"/><g onload='x()'>&amp;", "$\\frac{1}{0}$", "]]><!--"]
)
def test_words_of_any_kind_stay_words(hostile: str) -> None:
    panel = Panel([Curve([1, 2], [1, 2], hostile), Beyond(1, True, hostile)], hostile, hostile, hostile)
    drawn = Drawing([[panel]], title=hostile)
    picture = svg(drawn)
    assert words(picture).count(hostile) == 6
    root = ElementTree.fromstring(picture)
    assert not [
        one for one in root.iter() if one.tag == f"{SVG}script" or any(name.startswith("on") for name in one.attrib)
    ]
    assert png(drawn).startswith(b"\x89PNG")


@pytest.mark.nightly
def test_pictures_are_the_same_bytes_again_and_ask_for_nothing_from_elsewhere() -> None:
    panels = [[Panel([Histogram([0, 1, 2], [3, 4], "h")], "a", "b"), Panel([Curve([0, 1], [1, 0], "c")], "c", "d")]] * 2
    drawn = Drawing(panels, row_height=3.0, title="title")
    assert svg(drawn) == svg(drawn)
    assert png(drawn) == png(drawn)
    root = ElementTree.fromstring(svg(drawn))
    links = [value for one in root.iter() for name, value in one.attrib.items() if name.endswith("href")]
    assert all(link.startswith("#") for link in links)
