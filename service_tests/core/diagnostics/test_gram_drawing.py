"""The picture of Gram errors: the Monte Carlo comparison, by size and by kernel."""

import numpy as np
import pytest

from app.core.diagnostics.random_pairs import DRAWN_PAIRS, map_seeds, rms_by_kernel, row_pairs
from app.core.drawing import Curve, Drawing, Histogram
from service_tests.core.combinations import rows
from service_tests.core.diagnostics.measure import gram
from service_tests.core.specs import fourier

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
