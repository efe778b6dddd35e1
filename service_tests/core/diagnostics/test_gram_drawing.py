"""The picture of Gram errors: the Monte Carlo comparison, by size and by kernel."""

import numpy as np
import pytest

from app.core.diagnostics.control_variates import Estimator
from app.core.diagnostics.error_matrix import BINS
from app.core.diagnostics.random_pairs import DRAWN_PAIRS, map_seeds, rms_by_kernel, row_pairs
from app.core.drawing import Curve, Drawing, Histogram
from app.pictures.figures import svg
from service_tests.core.combinations import rows
from service_tests.core.diagnostics.measure import gram
from service_tests.core.specs import fourier, hashing

N = 120


def monte_carlo(drawing: Drawing | None) -> tuple[Histogram, Curve]:
    """What the picture has of the maps to compare with."""
    assert drawing is not None
    histogram, curve = (panel.marks[-1] for panel in drawing.rows[0])
    assert isinstance(histogram, Histogram)
    assert isinstance(curve, Curve)
    return histogram, curve


def test_the_monte_carlo_maps_are_drawn_with_the_mean_of_their_squares_at_each_kernel() -> None:
    x = rows(N, 5)
    found = gram(fourier(sampler={"kind": "sobol"}, dtype="float64"), x, seeds=3, seed=4)
    histogram, curve = monte_carlo(found.drawing)
    assert (histogram.label, curve.label) == (
        "Monte Carlo, mean of 3 maps",
        "± root mean square, Monte Carlo, mean of 3 maps",
    )
    assert histogram.colour is curve.colour is None
    maps = [fourier(seed=seed, dtype="float64") for seed in map_seeds(4, 3)]
    i, j = row_pairs(N, DRAWN_PAIRS, 4)
    exact = maps[0].exact_gram(x, x)
    errors = [(made.gram(x, x) - exact)[i, j] for made in maps]
    middles, _ = rms_by_kernel(exact[i, j], errors[0])
    rms = np.sqrt(np.mean([np.square(rms_by_kernel(exact[i, j], one)[1]) for one in errors], axis=0))
    half = len(curve.x) // 2
    np.testing.assert_allclose(curve.x[:half], middles, rtol=1e-9)
    np.testing.assert_allclose(curve.y[:half], rms, rtol=1e-9)
    assert curve.y[half + 1 :] == [-one for one in curve.y[:half]]
    assert sum(histogram.heights) == pytest.approx(1)
    assert histogram.edges[-1] == max(np.abs(made.gram(x, x) - exact).max() for made in maps)


def test_a_map_without_errors_to_see_is_one_bar_among_those_of_monte_carlo() -> None:
    made = fourier(sampler={"kind": "sparse_grid", "level": 4}, s=None, dtype="float64")
    found = gram(made, rows(N, 6, size=0.2), seeds=2)
    assert found.drawing is not None
    map_s, of_monte_carlo = found.drawing.rows[0][0].marks
    assert isinstance(map_s, Histogram)
    assert isinstance(of_monte_carlo, Histogram)
    assert map_s.edges == of_monte_carlo.edges
    assert map_s.heights[BINS // 2] == pytest.approx(1)
    assert max(of_monte_carlo.heights) < 0.9


def test_one_pair_is_no_pairs() -> None:
    drawing = gram(fourier(), rows(2, 5), seeds=2).drawing
    assert drawing is not None
    assert drawing.rows[0][1].title == "map: 1 pair of different rows"


def test_hashes_have_no_monte_carlo_beside_them() -> None:
    drawing = gram(hashing(dtype="float32"), np.abs(rows(N, 5, dtype="float32"))).drawing
    assert drawing is not None
    assert "Monte Carlo" not in str(drawing)


def test_every_estimator_has_a_row_and_a_colour_and_the_picture_stays_below_150_kilobytes() -> None:
    # Errors of so many kinds that nearly all cells are there.
    drawing = gram(fourier(form="complex", s=16), rows(400, 5), list(Estimator), seeds=20).drawing
    assert drawing is not None
    assert [row[0].marks[0].colour for row in drawing.rows if isinstance(row[0].marks[0], Histogram)] == [0, 1, 2]
    picture = svg(drawing).decode()
    assert len(picture) < 150_000
    for words in ("map: relative Frobenius error", "cv2: relative Frobenius error", "Monte Carlo, mean of 20 maps"):
        assert words in picture
