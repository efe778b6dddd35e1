"""Products of sincs against mpmath: phases of any size, and points that nearly meet."""

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.discrepancy.box_discrepancy import prepare_points, sinc_rows
from service_tests.cases import each

Matrix = NDArray[np.float64]


def gram_of(frequencies: Matrix, box: Matrix) -> Matrix:
    s = len(frequencies)
    gram = np.empty((s, s))
    sinc_rows(box, prepare_points(frequencies, box), 0, s, np.ones(s), np.empty(s), gram)
    return gram


def exact_sinc(b: float, w: float, v: float) -> mp.mpf:
    z = mp.mpf(b) * (mp.mpf(w) - mp.mpf(v))
    return mp.sin(z) / z if z else mp.mpf(1)


@each("d", [1, 3, 40])
@each("size", [1e-9, 1.0, 1e6, 1e12])
def test_the_gram_equals_mpmath_at_any_size(d: int, size: float) -> None:
    rng = np.random.default_rng(d)
    frequencies, box = size * rng.normal(size=(9, d)), rng.uniform(0.1, 1e4 if size > 1 else 1.0, size=d)
    gram = gram_of(frequencies, box)
    with mp.workdps(60):
        for m in range(9):
            for n in range(9):
                exact = mp.fprod(exact_sinc(box[j], frequencies[m, j], frequencies[n, j]) for j in range(d))
                assert abs(gram[m, n] - float(exact)) < 1e-13
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(gram.diagonal(), 1.0)


@each(("b", "size"), [(1.7, 1e16), (1.7, 1e30), (1.7, 1e100), (1e50, 1.0), (1e150, 1e150), (1e300, 1e4)])
def test_phases_beyond_two_to_the_53_are_as_exact(b: float, size: float) -> None:
    frequencies, box = size * np.random.default_rng(1).normal(size=(6, 1)), np.array([b])
    points = prepare_points(frequencies, box)
    gram = gram_of(frequencies, box)
    with mp.workdps(700):
        for m in range(6):
            phase = mp.mpf(b) * mp.mpf(frequencies[m, 0])
            assert abs(points.sines[0, m] - float(mp.sin(phase))) < 4e-16
            assert abs(points.cosines[0, m] - float(mp.cos(phase))) < 4e-16
            for n in range(6):
                assert abs(gram[m, n] - float(exact_sinc(b, frequencies[m, 0], frequencies[n, 0]))) < 1e-15
    np.testing.assert_array_equal(gram.diagonal(), 1.0)


@pytest.mark.parametrize("far", [0.0, 12.5, 1e6])
def test_near_points_far_out_are_as_exact_as_near_the_origin(far: float) -> None:
    box = np.array([1.7])
    gaps = [10.0**-k for k in range(11)] + [0.2499 / 1.7, 0.2501 / 1.7]
    for gap in gaps:
        gram = gram_of(np.array([[far], [far + gap]]), box)
        with mp.workdps(60):
            assert abs(gram[0, 1] - float(exact_sinc(1.7, far, far + gap))) < 2e-15
