"""Densities of points of any size."""

import numpy as np

from app.core.drawing import CELLS, Drawing, Panel, density
from app.pictures.figures import svg


def test_a_density_counts_every_point_of_any_size() -> None:
    rng = np.random.default_rng(1)
    for size in (0.0, 5e-324, 1e-310, 1e-30, 1.0, 1e38):
        x, y = size * rng.normal(size=(2, 500))
        found = density(x, y, "points", of=2)
        assert sum(map(sum, found.counts)) == 500
        assert len(found.counts) ** 2 <= CELLS / 2
        assert svg(Drawing([[Panel([found], "a", "b")]])).startswith(b"<?xml")
