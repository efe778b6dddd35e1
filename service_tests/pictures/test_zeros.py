"""Pictures of errors that are all 0, which no logarithm can show, or some of which are."""

from typing import Any

import pytest

from app.pictures import max_error_picture, recommendations_picture

SIZES: list[tuple[float, ...]] = [(0.0, 0.0), (0.0, 0.1), (0.0, 1e-300), (0.5, 1e-9), (1e9, 0.0)]


@pytest.mark.parametrize("errors", SIZES)
@pytest.mark.parametrize("deviation", [0.0, 0.2])
def test_recommendations(errors: tuple[float, ...], deviation: float) -> None:
    ranked = [
        {"n_output": 8 << i, "error_mean": error, "error_sd": deviation * error, "spec": {"sampler": {"kind": "gcws"}}}
        for i, error in enumerate(errors)
    ]
    assert b"relative Frobenius error" in recommendations_picture({"ranked": ranked})


@pytest.mark.parametrize("errors", SIZES)
@pytest.mark.parametrize("bound", [None, 0.5])
def test_max_error(errors: tuple[float, ...], bound: float | None) -> None:
    diameters: list[dict[str, Any]] = [
        {"diameter": 2.0**i, "max": error, "rms": error / 2, "bound": bound} for i, error in enumerate(errors)
    ]
    document = max_error_picture({"diameters": diameters, "samples": 10, "form": "complex"})
    assert b"root mean square" in document
    assert (b">bound<" in document) == (bound is not None)
