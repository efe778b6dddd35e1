"""Marks on their axes: colours, labels, and the cells of densities."""

from xml.etree import ElementTree

from app.core.drawing import Beyond, Curve, Density, Drawing, Histogram, Mark, Panel, Star
from app.pictures.figures import COLOURS, svg
from service_tests.pictures.test_figures import SVG, words


def test_every_mark_has_its_colour_and_every_label_stands_in_the_document() -> None:
    curves = [Curve([1, 2], [1, i], f"curve {i}", i, deviations=[0.1, 0.2]) for i in range(1, 18)]
    others: list[Mark] = [Star(1.5, 2.0, "the star"), Beyond(1.2, True, "much"), Histogram([1, 2], [3], "steps", None)]
    panel = Panel([*curves, *others], "across", "up", "above", "log2", "log", (0.5, 5), legend_beside=True)
    one = svg(Drawing([[panel]], title="over all"))
    labels = {"across", "up", "above", "over all", "the star", "much", "steps", *(f"curve {i}" for i in range(1, 18))}
    assert labels <= set(words(one))
    document = one.decode()
    assert all(colour in document for colour in COLOURS)
    assert document.count(COLOURS[1]) > document.count(COLOURS[2]), "the seventeenth curve has the first colour again"


def test_the_cells_of_a_density_are_in_the_document_in_the_shade_of_their_count() -> None:
    drawn = Density([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [[1, 1, 0], [1000, 0, 1]], "pairs")
    root = ElementTree.fromstring(svg(Drawing([[Panel([drawn], "a", "b")]])))
    shades = [group for group in root.iter(f"{SVG}g") if group.get("id", "").startswith("shade-")]
    faint, dark = (shade.find(f"{SVG}path") for shade in shades)
    assert faint is not None
    assert dark is not None
    # Two neighbours are one stretch.
    assert (faint.get("d", "").count("M"), dark.get("d", "").count("M")) == (2, 1)
    assert "opacity: 0.18" in faint.get("style", "")
    assert "opacity" not in dark.get("style", "") or "opacity: 1" in dark.get("style", "")


def test_of_a_line_through_one_place_there_is_something_to_see() -> None:
    one = Curve([0.5, float("nan"), 0.5], [0.2, float("nan"), -0.2], "one", 1, "line")
    several = Curve([0.5, 0.6], [0.2, 0.3], "several", 2, "line")
    document = svg(Drawing([[Panel([one, several], "x", "y")]])).decode()
    strokes = [part.split(">")[0] for part in document.split("<use ")[1:]]
    of_colour = [sum(COLOURS[colour] in part for part in strokes) for colour in (1, 2)]
    assert of_colour[0] == 3, "both places, and the legend"
    assert of_colour[1] == 0
