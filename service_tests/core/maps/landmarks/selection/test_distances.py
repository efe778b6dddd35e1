import numpy as np
import pytest

from app.core.maps.landmarks.selection.distances import ScaledDistances, distances_of
from service_tests.core.combinations import Fields
from service_tests.core.maps.landmarks.selection.chosen import every_kernel, of, prepared

SCALED = ("gaussian", "laplacian", "cauchy", "matern", "rational_quadratic")


@every_kernel
def test_distances_are_those_of_scaled_rows_or_of_the_kernels_own_space(its_kernel: Fields) -> None:
    made = of(its_kernel)
    rows, centres = prepared(made, 30), prepared(made, 4, seed=2)
    distances = distances_of(made, rows)
    found = distances.to(slice(10, 30), centres)
    assert isinstance(distances, ScaledDistances) == (its_kernel["kind"] in SCALED)
    if its_kernel["kind"] in SCALED:
        lags = (rows[10:, None] - centres) / its_kernel["length_scale"]
        wanted = np.abs(lags).sum(axis=2) if its_kernel["kind"] == "laplacian" else (lags**2).sum(axis=2)
    else:
        own = np.array(
            [
                [made.exact(x[None], x[None])[0, 0] + made.exact(c[None], c[None])[0, 0] for c in centres]
                for x in rows[10:]
            ]
        )
        wanted = own - 2 * made.exact(rows[10:], centres)
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert not distances.to(slice(0, 30), rows).diagonal().any()
    assert distances.per_part(4) >= distances.per_part(400) >= 1
