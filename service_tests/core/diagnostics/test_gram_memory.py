"""Memory that Gram errors take, beside what is reckoned for them."""

import tracemalloc
from typing import Any

import pytest

from app.core.diagnostics import hermitian_tiles
from app.core.diagnostics.control_variates import Estimator
from app.core.diagnostics.gram import Gram
from app.core.maps import FeatureMap
from service_tests.cases import with_nightly
from service_tests.core.combinations import rows
from service_tests.core.diagnostics.measure import gram_errors
from service_tests.core.specs import fourier

TILE_ROWS = hermitian_tiles.TILE_ROWS


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that there are tiles on and off the diagonal, and some not square."""
    monkeypatch.setattr(hermitian_tiles, "TILE_ROWS", 128)


def memory(made: FeatureMap, x: Any, **options: Any) -> int:
    return Gram(**options).memory_bytes(made, {"vectors": x})


@pytest.mark.gate
@pytest.mark.parametrize("form", ["complex", "cos_sin"])
def test_no_more_than_one_triangle_in_float32_is_held(form: str) -> None:
    n = 1500
    made, x = fourier(form=form, dtype="float64"), rows(n, 5)
    tracemalloc.start()
    gram_errors(made, x, list(Estimator), seeds=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    triangle = n * (n + 128) // 2 * (8 if form == "complex" else 4)
    assert triangle < peak < 1.6 * triangle


@pytest.mark.parametrize(("n", "d"), with_nightly([(200, 1500)], [(1500, 4)]))
@pytest.mark.parametrize("form", ["cos_sin", "complex"])
def test_memory_stays_within_what_is_reckoned(form: str, n: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hermitian_tiles, "TILE_ROWS", TILE_ROWS)
    made, x = fourier(input_dim=d, form=form), rows(n, 5, d, dtype="float32")
    tracemalloc.start()
    gram_errors(made, x, list(Estimator), seeds=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.4 < peak / memory(made, x, estimators=tuple(Estimator)) < 1.3
