"""Drawings as SVG and PNG: hostile words, sizes, the same bytes again; errors without a logarithm."""

import sys
from typing import Any
from xml.etree import ElementTree

from app.core.diagnostics.box_discrepancy import BoxErrors
from app.core.diagnostics.box_discrepancy import drawing as drawing_of_box
from app.core.drawing import Beyond, Curve, Drawing, Panel
from app.pictures.figures import png, svg
from service_tests.cases import each

SVG = "{http://www.w3.org/2000/svg}"


def words(picture: bytes) -> list[str]:
    """The texts of an SVG document."""
    return ["".join(text.itertext()) for text in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_box_discrepancies_of_any_size_are_drawn_and_those_that_are_rounding_are_counted() -> None:
    for errors, untold in (((0.0,), 1), ((-1e-18, 0.1), 1), ((1e-300, 1e300), 0)):
        known = {"discrepancy_squared": None, "log_discrepancy_squared": None, "ratio": None}
        scales: Any = [
            {"box_scale": 0.5**i, "normalized": error, "expected_monte_carlo": 0.25, **known}
            for i, error in enumerate(errors)
        ]
        said = words(svg(drawing_of_box(BoxErrors(box=[1.0] * 9, scales=scales))))
        assert "box of half widths 1, 1, 1, 1, …" + f"; {untold} too small to tell" * (untold > 0) in said
        assert ("this map" in said) == (untold < len(errors))
        assert "Monte Carlo, expected" in said


def test_words_of_any_kind_stay_words_and_pictures_are_the_same_bytes_again() -> None:
    for hostile in ("<script>alert(1)</script>", "\"/><g onload='x()'>&amp;", "$\\frac{1}{0}$", "]]><!--"):
        panel = Panel([Curve([1, 2], [1, 2], hostile), Beyond(1, True, hostile)], hostile, hostile, hostile)
        drawn = Drawing([[panel]], title=hostile)
        picture = svg(drawn)
        assert svg(drawn) == picture
        assert words(picture).count(hostile) == 6
        for one in ElementTree.fromstring(picture).iter():
            assert one.tag != f"{SVG}script"
            assert not any(name.startswith("on") for name in one.attrib)
            assert all(link.startswith("#") for name, link in one.attrib.items() if name.endswith("href"))
    image = png(drawn)
    assert image.startswith(b"\x89PNG")
    assert image == png(drawn)


@each("scale", ["linear", "log", "log2"])
def test_numbers_of_any_size_are_drawn(scale: Any) -> None:
    largest = sys.float_info.max
    of_linear = [(-largest, -largest), (-largest, largest)] if scale == "linear" else []
    for ends in ((1e154, 1e300), (5e-324, largest), (largest, largest), *of_linear):
        for curve in (Curve(ends, (1, 2), "a curve"), Curve((1, 2), ends, "a curve")):
            assert "a curve" in words(svg(Drawing([[Panel([curve], "x", "y", x_scale=scale, y_scale=scale)]])))
