"""What rounding rows to float32 does to kernels, beside the kernels of the rounded rows."""

from typing import Any

import numpy as np

from app.core.arrays import Matrix
from app.core.kernels.rounding import MOST, coarseness_warnings
from service_tests.cases import each
from service_tests.core.specs import kernel

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
RNG = np.random.default_rng(31)


def told(rows: Any, dtype: Any = FLOAT32, counts_exact: bool = False, **fields: Any) -> tuple[str, ...]:
    return coarseness_warnings(kernel(**fields).rounding(dtype), rows, counts_exact, "vectors")


def min_max(x: Matrix, y: Matrix, p: float) -> Matrix:
    """The generalized min-max kernel of rows whose center is subtracted, by its definition."""
    u, v = (np.concatenate([np.maximum(rows, 0), np.maximum(-rows, 0)], axis=1) ** p for rows in (x, y))
    return np.asarray(np.minimum(u, v).sum(axis=1) / np.maximum(u, v).sum(axis=1))


@each("p", [1.0, 0.3, 4.0])
@each(("spread", "is_coarse"), [(100.0, True), (3e4, True), (1e8, False)])
def test_a_center_of_gmm_far_from_zero_is_warned_of_by_what_is_left_of_rows(
    spread: float, is_coarse: bool, p: float
) -> None:
    center = np.array([1.7e9, -2.5e8, 3.0])
    rows = center + spread * RNG.normal(size=(40, 3))
    left = rows.astype(np.float32).astype(np.float64) - center.astype(np.float32)
    sizes = 1 - min_max(rows - center, left, p)
    assert (sizes.max() > MOST) == is_coarse
    found = told(rows, kind="gmm", p=p, center=center.tolist())
    if not is_coarse:
        assert found == ()
        return
    worst, count = int(np.argmax(sizes)), int((sizes > MOST).sum())
    (text,) = found
    assert text.isascii()
    assert text.startswith(f"float32 is too coarse for {count} of 40 rows of vectors: at row {worst} ")
    assert f"is {1 - sizes[worst]:.3g} and not 1" in text
    assert "the center there is" in text
    assert "input of the map" in text
    assert text.endswith("or take dtype float64")
    assert told(rows, FLOAT64, kind="gmm", p=p, center=center.tolist()) == ()


@each(("p", "is_coarse"), [(1.0, False), (8000.0, False), (1e4, True), (1e6, True)])
def test_a_large_power_of_gmm_is_warned_of_in_float32(p: float, is_coarse: bool) -> None:
    """Of one column, the kernel of a row with what it is rounded to is their ratio to the power p."""
    rows = 1 + RNG.random((400, 1))
    rounded = rows.astype(np.float32).astype(np.float64)
    off = 1 - np.exp(-p * np.abs(np.log(rounded / rows))).min()
    found = told(rows, kind="gmm", p=p)
    assert len(found) == is_coarse
    for text in found:
        assert text.startswith("float32 is too coarse for 400 of 400 rows of vectors")
        assert text.isascii()
        most = float(text.partition("off by up to ")[2].split()[0])
        assert 0.45 * most < off < most  # one row alone is rounded here
    assert told(rows, FLOAT64, kind="gmm", p=p) == told(rounded, kind="gmm", p=p) == ()


@each("scale", [1.0, 1e-20, 1e-30, 1e-34])
@each("dtype", [FLOAT32, FLOAT64])
def test_tiny_rows_are_warned_of_as_others_are(scale: float, dtype: Any) -> None:
    """Rows a million length scales from 0; the squares of the smallest underflow in float32."""
    of = {"kind": "gaussian", "length_scale": scale}
    far, near = (np.array([[size * scale, 0, 0]], dtype) for size in (1e6, 1.0))
    assert len(told(far, counts_exact=True, **of)) == 1
    assert told(near, counts_exact=True, **of) == ()
