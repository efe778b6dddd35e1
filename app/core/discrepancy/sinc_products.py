"""The compiled inner loops of the box discrepancy: H(x, w) = Π_j sinc(b_j(x_j − w_j)), sinc z = sin z/z.

No sine stands in the inner loop: that of a difference comes from the sines and cosines of both points. They are taken
of b_j w_j to its last bit whatever its size, so that the difference is off by some 1e-16; below |z| = ¼, where
dividing by z would blow that up, a series takes its place. Sums are kept in lanes, one a point, and added in a fixed
order: what is computed depends on neither the vector width of the machine nor the number of threads.
"""

import math
from typing import NamedTuple

import numpy as np

from app.core.arrays import Matrix
from app.core.compiled import compiled

_LANES = 128
_SERIES_BELOW = 0.25
# Each term of sinc z = 1 − z²/6 + … over the one before, by −z²; of sinc′ z = −z/3 + … likewise.
_SINC_STEPS = tuple(1 / (2 * k * (2 * k + 1)) for k in range(1, 6))
_SLOPE_STEPS = tuple(1 / (2 * k * (2 * k + 3)) for k in range(1, 6))
# 2^27 + 1 splits a float64 into two halves of 26 bits (Veltkamp).
_SPLITTER = 134217729.0

# One coordinate with its sine and cosine: of a point, and of the points in the lanes.
_Point = tuple[float, float, float]
_Lanes = tuple[Matrix, Matrix, Matrix]


class Points(NamedTuple):
    """Points with the sines and cosines of b_j w_j, coordinate by coordinate: arrays of shape (d, n)."""

    coordinates: Matrix
    sines: Matrix
    cosines: Matrix


def tabulated(frequencies: Matrix, box: Matrix) -> Points:
    """The points (n, d), finite with finite b_j w_j, as the loops take them; box b, (d,)."""
    points = Points(np.ascontiguousarray(frequencies.T), *np.empty((2, *frequencies.shape[::-1])))
    _tabulate(points.coordinates, box, points.sines, points.cosines)
    return points


@compiled
def _tabulate(coordinates: Matrix, box: Matrix, sines: Matrix, cosines: Matrix) -> None:
    for j in range(coordinates.shape[0]):
        b, b_exponent = math.frexp(box[j])
        b_high = b * _SPLITTER
        b_high -= b_high - b
        for i in range(coordinates.shape[1]):
            w, w_exponent = math.frexp(coordinates[j, i])
            w_high = w * _SPLITTER
            w_high -= w_high - w
            product = b * w
            # What the product lost in rounding (Dekker).
            lost = (b_high * w_high - product) + b_high * (w - w_high) + (b - b_high) * w_high
            lost += (b - b_high) * (w - w_high)
            exponent = b_exponent + w_exponent
            phase, rest = math.ldexp(product, exponent), math.ldexp(lost, exponent)
            sine, cosine = math.sin(phase), math.cos(phase)
            # Of a phase beyond 2^53 the rest passes 1, so that no series in it will do.
            sine_rest, cosine_rest = math.sin(rest), math.cos(rest)
            sines[j, i] = sine * cosine_rest + cosine * sine_rest
            cosines[j, i] = cosine * cosine_rest - sine * sine_rest


@compiled
def _sinc_series(square: float) -> float:
    """Sinc of z with z² = square ≤ 1/16, to the last bit."""
    tail = 1 - square * _SINC_STEPS[3] * (1 - square * _SINC_STEPS[4])
    return 1 - square * _SINC_STEPS[0] * (1 - square * _SINC_STEPS[1] * (1 - square * _SINC_STEPS[2] * tail))


@compiled
def _slope_series(square: float) -> float:
    """sinc′(z)/z for the same z."""
    tail = 1 - square * _SLOPE_STEPS[3] * (1 - square * _SLOPE_STEPS[4])
    parts = 1 - square * _SLOPE_STEPS[0] * (1 - square * _SLOPE_STEPS[1] * (1 - square * _SLOPE_STEPS[2] * tail))
    return parts * (-1 / 3)  # not divided: the loop has enough divisions


# The loops over lanes are functions of their own: in place, too many indices keep them from being vectorised.
@compiled
def _multiply(b: float, one: _Point, many: _Lanes, products: Matrix) -> None:
    (w, sine, cosine), (coordinates, sines, cosines) = one, many
    for k in range(products.shape[0]):
        z = b * (w - coordinates[k])
        plain = (sine * cosines[k] - cosine * sines[k]) / z
        products[k] *= _sinc_series(z * z) if abs(z) < _SERIES_BELOW else plain


@compiled
def _differentiate(b: float, one: _Point, many: _Lanes, products: Matrix, factors: Matrix, slopes: Matrix) -> None:
    (w, sine, cosine), (coordinates, sines, cosines) = one, many
    for k in range(products.shape[0]):
        z = b * (w - coordinates[k])
        is_small = abs(z) < _SERIES_BELOW
        inverse = 1 / z
        plain = (sine * cosines[k] - cosine * sines[k]) * inverse
        plain_slope = (cosine * cosines[k] + sine * sines[k] - plain) * inverse
        factor = _sinc_series(z * z) if is_small else plain
        slopes[k] = z * _slope_series(z * z) if is_small else plain_slope
        factors[k] = factor
        products[k] *= factor


@compiled
def _collect(before: Matrix, slopes: Matrix, factors: Matrix, behind: Matrix, summed: Matrix) -> None:
    for k in range(behind.shape[0]):
        summed[k] += before[k] * slopes[k] * behind[k]
        behind[k] *= factors[k]


@compiled
def sinc_rows(box: Matrix, points: Points, first: int, last: int, weights: Matrix, sums: Matrix, gram: Matrix) -> None:
    """Σ_{l<m} weight_l H(w_l, w_m) of the points m from `first` to `last`, into sums[m − first].

    Where `gram` is not empty, H(w_l, w_m) for l < m goes into gram[m, l] and gram[l, m], and 1 into gram[m, m].
    """
    coordinates, sines, cosines = points
    lanes = np.empty(_LANES)
    sums[:] = 0.0
    for start in range(0, last, _LANES):
        for m in range(max(first, start + 1), last):
            width = min(_LANES, m - start)
            many = slice(start, start + width)
            lanes[:] = 1.0
            for j in range(box.shape[0]):
                one = coordinates[j, m], sines[j, m], cosines[j, m]
                _multiply(box[j], one, (coordinates[j, many], sines[j, many], cosines[j, many]), lanes[:width])
            total = 0.0
            for k in range(width):
                total += weights[start + k] * lanes[k]
            sums[m - first] += total
            if gram.shape[0]:
                for k in range(width):
                    gram[m, start + k] = gram[start + k, m] = lanes[k]
    if gram.shape[0]:
        for m in range(first, last):
            gram[m, m] = 1.0


@compiled
def sinc_gradients(
    box: Matrix, points: Points, weights: Matrix, moving: Points, first: int, sums: Matrix, gradients: Matrix
) -> None:
    """Σ_l weight_l H(x, w_l) of `moving` x from `first` on into `sums`, (m,), its gradient into `gradients`, (m, d).

    A factor may be 0, so that the product of the others is one over those before times one over those behind it.
    """
    coordinates, sines, cosines = points
    targets, target_sines, target_cosines = moving
    d = box.shape[0]
    factors, slopes, before = np.empty((d, _LANES)), np.empty((d, _LANES)), np.empty((d, _LANES))
    lanes, summed = np.empty(_LANES), np.empty((d, _LANES))
    for m in range(sums.shape[0]):
        sums[m] = 0.0
        summed[:] = 0.0
        for start in range(0, coordinates.shape[1], _LANES):
            width = min(_LANES, coordinates.shape[1] - start)
            many, held = slice(start, start + width), slice(width)
            lanes[:] = 1.0
            for j in range(d):
                for k in range(_LANES):
                    before[j, k] = lanes[k]
                one = targets[j, first + m], target_sines[j, first + m], target_cosines[j, first + m]
                others = coordinates[j, many], sines[j, many], cosines[j, many]
                _differentiate(box[j], one, others, lanes[held], factors[j, held], slopes[j, held])
            total = 0.0
            for k in range(width):
                total += weights[start + k] * lanes[k]
                lanes[k] = weights[start + k]
            sums[m] += total
            for j in range(d - 1, -1, -1):
                _collect(before[j, held], slopes[j, held], factors[j, held], lanes[held], summed[j, held])
        for j in range(d):
            total = 0.0
            for k in range(_LANES):
                total += summed[j, k]
            gradients[m, j] = box[j] * total
