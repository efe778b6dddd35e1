"""Memory that Gram errors take, beside what is reckoned for them."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from app.core.diagnostics import hermitian_tiles
from app.core.diagnostics.control_variates import Estimator
from app.core.diagnostics.gram import Gram
from app.core.maps import FeatureMap
from service_tests.cases import with_nightly
from service_tests.core.combinations import rows
from service_tests.core.diagnostics.measure import gram_errors
from service_tests.core.specs import fourier, hashing

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


def test_the_maps_to_compare_with_count_too() -> None:
    made, x = fourier(input_dim=4000, s=512), rows(2, 5, 4000, dtype="float32")
    tracemalloc.start()
    gram_errors(made, x, seeds=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.1 < peak / memory(made, x, seeds=1) < 1
    assert memory(made, x, seeds=0) < peak / 10


def test_memory_grows_as_it_does() -> None:
    for made in (fourier(s=4096), hashing(s=1024)):
        assert memory(made, np.zeros((20_000, 4), np.float32)) < 8 * 20_000**2
    of_real, of_complex = (memory(fourier(form=form), np.zeros((1000, 4), np.float32)) for form in ("phase", "complex"))
    assert 1.9 < of_complex / of_real < 2
