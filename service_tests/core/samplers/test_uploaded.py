"""Frequencies that the client brings."""

from typing import Any

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.maps import FourierMap
from service_tests.cases import each
from service_tests.core.specs import fourier, refusal, spec

ROWS = np.random.default_rng(1).normal(size=(5, 4)).tolist()


def uploaded(**fields: Any) -> dict[str, Any]:
    return {"kind": "uploaded", "frequencies": ROWS} | fields


def test_the_set_is_kept_as_it_came_and_weighted_equally() -> None:
    arrays = fourier(s=None, sampler=uploaded(), dtype="float64").arrays
    assert (arrays["frequencies"] == ROWS).all()
    assert (arrays["weights"] == 0.2).all()


def test_weights_are_kept_and_negative_ones_make_a_signature() -> None:
    weights = [0.5, -0.25, 0.5, 0.0, 0.25]
    made = fourier(s=None, sampler=uploaded(weights=weights), dtype="float64")
    assert (made.arrays["weights"] == weights).all()
    assert made.signature is not None
    assert made.signature.tolist() == [1, -1, 1, 1, 1]
    x, y = np.random.default_rng(2).normal(size=(2, 3, 4))
    expected = np.einsum("l,nml->nm", weights, np.cos((x[:, None] - y[None]) @ np.transpose(ROWS)))
    np.testing.assert_allclose(made.gram(x, y), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("i", "row"), [(0, [1.0] * 3), (3, [1.0] * 5), (4, [])])
def test_a_row_of_another_width_is_refused_by_its_number(i: int, row: list[float]) -> None:
    error = refusal(sampler=uploaded(frequencies=[*ROWS[:i], row, *ROWS[i + 1 :]]))
    assert error.pointer == f"/sampler/frequencies/{i}"
    assert error.detail == f"frequency {i} has {len(row)} entries; input_dim 4 wants as many"


@pytest.mark.parametrize("count", [0, 4, 6])
def test_another_number_of_weights_is_refused(count: int) -> None:
    error = refusal(sampler=uploaded(weights=[0.1] * count))
    assert error.pointer == "/sampler/weights"
    assert error.detail == f"expected 5 weights, got {count}"


def test_negative_weights_have_no_phase_form() -> None:
    made = spec(sampler=uploaded(weights=[0.5, 0.5, 0.5, 0.5, -1.0]), form="phase")
    with pytest.raises(InvalidInput, match="negative weights") as caught:
        FourierMap.build(made)
    assert caught.value.pointer == "/form"


@each(
    ("weights", "dtype"),
    [
        ([0.0], "float32"),
        ([1e-50], "float32"),
        ([1e308], "float32"),
        ([3e38], "float32"),
        ([1e308, 1e308], "float64"),
        ([-1e-320], "float32"),
    ],
)
def test_weights_that_make_features_of_nothing_or_infinity_are_refused(weights: list[float], dtype: str) -> None:
    rows = [[0.5, 1.0, 1.5, 2.0]] * len(weights)
    made = spec(sampler={"kind": "uploaded", "frequencies": rows, "weights": weights}, s=None, dtype=dtype)
    with pytest.raises(InvalidInput, match="the weights sum to") as caught:
        FourierMap.build(made)
    assert caught.value.pointer == "/sampler/weights"
