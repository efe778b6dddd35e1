"""Box discrepancy: the mean squared error of a frequency set over a box of differences (QMC paper, section 4).

The loops multiply H(x, w) = Π_j sinc(b_j(x_j − w_j)), sinc z = sin z/z. The inner loop computes no sine: the sine of a
difference comes from the sines and cosines of both points. These are taken of b_j w_j to its last bit, whatever its
size, so that the error of the difference is some 1e-16. Below |z| = ¼, where dividing by z would amplify it, a series
is used. Sums are kept in lanes, one per point, and added in a fixed order: results depend neither on the vector width
of the machine nor on the number of threads.

The one-dimensional integrals are for any kernel whose characteristic function is known. With r = b/σ and z = bw, both
dimensionless, and φ the characteristic function at σ = 1:

    A = ∫₀¹ φ(rt)² dt,    g = ∫₀¹ φ(rt) cos(zt) dt,    ∂g/∂z = −∫₀¹ t φ(rt) sin(zt) dt.

φ is expanded in Legendre polynomials on panels, and each polynomial is integrated against the oscillation exactly
(Bakhvalov and Vasil'eva 1968; DLMF 10.54.2: ∫ P_n(x) e^{izx} dx over [−1, 1] is 2 iⁿ j_n(z)). The error is that of the
expansion and thus the same for any z. A fixed rule fails as soon as z exceeds its number of nodes, and closed forms
cancel or overflow in some ranges. Measured error: 1e-15 at most, absolute, for r from 1e-4 to 1e4 and z up to 1e10.
"""

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from app.core.arrays import Matrix, Whole, row_blocks
from app.core.compiled import jit
from app.core.discrepancy.row_differences import Pulls, weights_of
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, ProductKernel, ShiftInvariantKernel
from app.core.progress import Pause, Progress, no_pause, pack_arrays, unpack_arrays
from app.core.threads import for_each

_LANES = 128
_SINC_SERIES_BELOW = 0.25
# Factors of −z² from term to term of sinc z = 1 − z²/6 + …, and of sinc′ z = −z/3 + ….
_SINC_STEPS = tuple(1 / (2 * k * (2 * k + 1)) for k in range(1, 6))
_SLOPE_STEPS = tuple(1 / (2 * k * (2 * k + 3)) for k in range(1, 6))
# 2^27 + 1 splits a float64 into two halves of 26 bits (Veltkamp).
_SPLITTER = 134217729.0

# One coordinate with its sine and cosine: of one point, and of the points in the lanes.
_Point = tuple[float, float, float]
_Lanes = tuple[Matrix, Matrix, Matrix]


class Points(NamedTuple):
    """Points with the sines and cosines of b_j w_j, coordinate by coordinate: arrays of shape (d, n)."""

    coordinates: Matrix
    sines: Matrix
    cosines: Matrix


def prepare_points(frequencies: Matrix, box: Matrix) -> Points:
    """Return the points (n, d), finite with finite b_j w_j, in the form that the loops take; box b, (d,)."""
    points = Points(np.ascontiguousarray(frequencies.T), *np.empty((2, *frequencies.shape[::-1])))
    _tabulate(points.coordinates, box, points.sines, points.cosines)
    return points


@jit
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
            # Rounding error of the product (Dekker).
            lost = (b_high * w_high - product) + b_high * (w - w_high) + (b - b_high) * w_high
            lost += (b - b_high) * (w - w_high)
            exponent = b_exponent + w_exponent
            phase, rest = math.ldexp(product, exponent), math.ldexp(lost, exponent)
            sine, cosine = math.sin(phase), math.cos(phase)
            # For a phase beyond 2^53 the rest exceeds 1, so that a series in it is not accurate.
            sine_rest, cosine_rest = math.sin(rest), math.cos(rest)
            sines[j, i] = sine * cosine_rest + cosine * sine_rest
            cosines[j, i] = cosine * cosine_rest - sine * sine_rest


@jit
def _sinc_series(square: float) -> float:
    """Return sinc z for z² = square ≤ 1/16, to the last bit."""
    tail = 1 - square * _SINC_STEPS[3] * (1 - square * _SINC_STEPS[4])
    return 1 - square * _SINC_STEPS[0] * (1 - square * _SINC_STEPS[1] * (1 - square * _SINC_STEPS[2] * tail))


@jit
def _slope_series(square: float) -> float:
    """Return sinc′(z)/z for z² = square ≤ 1/16."""
    tail = 1 - square * _SLOPE_STEPS[3] * (1 - square * _SLOPE_STEPS[4])
    parts = 1 - square * _SLOPE_STEPS[0] * (1 - square * _SLOPE_STEPS[1] * (1 - square * _SLOPE_STEPS[2] * tail))
    return parts * (-1 / 3)  # not divided: the loop has enough divisions


# The loops over lanes are functions of their own: inline, they have too many indices to be vectorised.
@jit
def _multiply(b: float, one: _Point, many: _Lanes, products: Matrix) -> None:
    (w, sine, cosine), (coordinates, sines, cosines) = one, many
    for k in range(products.shape[0]):
        z = b * (w - coordinates[k])
        plain = (sine * cosines[k] - cosine * sines[k]) / z
        products[k] *= _sinc_series(z * z) if abs(z) < _SINC_SERIES_BELOW else plain


@jit
def _differentiate(b: float, one: _Point, many: _Lanes, products: Matrix, factors: Matrix, slopes: Matrix) -> None:
    (w, sine, cosine), (coordinates, sines, cosines) = one, many
    for k in range(products.shape[0]):
        z = b * (w - coordinates[k])
        is_small = abs(z) < _SINC_SERIES_BELOW
        inverse = 1 / z
        plain = (sine * cosines[k] - cosine * sines[k]) * inverse
        plain_slope = (cosine * cosines[k] + sine * sines[k] - plain) * inverse
        factor = _sinc_series(z * z) if is_small else plain
        slopes[k] = z * _slope_series(z * z) if is_small else plain_slope
        factors[k] = factor
        products[k] *= factor


@jit
def _collect(before: Matrix, slopes: Matrix, factors: Matrix, behind: Matrix, summed: Matrix) -> None:
    for k in range(behind.shape[0]):
        summed[k] += before[k] * slopes[k] * behind[k]
        behind[k] *= factors[k]


@jit
def sinc_rows(box: Matrix, points: Points, first: int, last: int, weights: Matrix, sums: Matrix, gram: Matrix) -> None:
    """Write Σ_{l<m} weight_l H(w_l, w_m) to sums[m − first], for the points m from `first` to `last` (excluded).

    If `gram` is not empty, write H(w_l, w_m) for l < m to gram[m, l] and gram[l, m], and 1 to gram[m, m].
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


@jit
def sinc_gradients(
    box: Matrix, points: Points, weights: Matrix, moving: Points, first: int, sums: Matrix, gradients: Matrix
) -> None:
    """Write Σ_l weight_l H(x, w_l) of `moving` x from `first` on to `sums`, (m,), its gradient to `gradients`, (m, d).

    A factor may be 0. The product of all other factors is therefore the product of those before times that of those
    behind.
    """
    coordinates, sines, cosines = points
    targets, target_sines, target_cosines = moving
    d, n_lanes = box.shape[0], min(_LANES, coordinates.shape[1])
    factors, slopes, before = np.empty((d, n_lanes)), np.empty((d, n_lanes)), np.empty((d, n_lanes))
    lanes, summed = np.empty(n_lanes), np.empty((d, n_lanes))
    for m in range(sums.shape[0]):
        sums[m] = 0.0
        summed[:] = 0.0
        for start in range(0, coordinates.shape[1], _LANES):
            width = min(_LANES, coordinates.shape[1] - start)
            many, held = slice(start, start + width), slice(width)
            lanes[:] = 1.0
            for j in range(d):
                for k in range(n_lanes):
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
            for k in range(n_lanes):
                total += summed[j, k]
            gradients[m, j] = box[j] * total


# Edges of panels in units of σ: a kernel may have a kink at 0, and beyond that varies on the scale of the larger of σ
# and the lag. The part beyond the last edge adds less than 2^−62 to the integral of any φ that falls like 1/β² or
# faster.
_EDGES = np.concatenate([[0.0], np.exp2(np.arange(63))])
# Two kilobytes each.
_MOST_PANELS = 1 << 17
# Polynomials and nodes per panel. The slowest expansion is the Gaussian's between 4σ and 8σ.
_MODES, _NODES = 32, 40
# Coefficients below this part of the largest are mostly rounding errors and are left out.
_NEGLIGIBLE = 1e-14
# A recurrence that starts this far above the last order has forgotten its start.
_HEAD_START = 30
# Below this, three terms of the series are exact, and the recurrence, which grows by 1/x a step, would overflow.
_SERIES_BELOW = 0.01


class Expansion(NamedTuple):
    """φ_j(r_j t) and t φ_j(r_j t) expanded on panels of [0, 1]: d coordinates, p panels, at most n polynomials."""

    centres: Matrix
    """Centres of the panels, (d, p)."""
    halves: Matrix
    """Half the lengths of the panels, (d, p)."""
    sizes: Whole
    """Number of polynomials that count, (d, p); 0 for a panel that adds nothing."""
    values: Matrix
    """Coefficients of φ, (d, p, n), times the length of the panel and the sign of iⁿ."""
    moments: Matrix
    """Coefficients of tφ, (d, p, n), times the length of the panel and the sign of iⁿ."""


def check_panels(n: int) -> None:
    """Raise InvalidInput for a box of more coordinates, each times its panels, than there is memory for."""
    if n > _MOST_PANELS:
        raise InvalidInput(f"expected a box of up to {_MOST_PANELS} panels in all coordinates, got {n}", "/box")


def expansion(kernel: ProductKernel, ratios: Matrix) -> tuple[Expansion, Matrix]:
    """Return expansions of the kernel's factors for the ratios r_j = b_j/σ_j ≥ 0, (d,), and log A_j, (d,)."""
    check_panels(len(ratios))
    with np.errstate(divide="ignore", over="ignore"):  # a small ratio has only the first panel
        ends = np.minimum(_EDGES[1:] / ratios[:, None], 1)
    ends = ends[:, : int((ends < 1).sum(axis=1).max()) + 1]
    check_panels(ends.size)
    starts = np.concatenate([np.zeros((len(ratios), 1)), ends[:, :-1]], axis=1)
    centres, halves = (starts + ends) / 2, (ends - starts) / 2
    nodes, node_weights, modes = _legendre()
    t = centres[..., None] + halves[..., None] * nodes
    phi = kernel.standard_characteristic(ratios[:, None, None] * t)
    # Sums without the linear algebra library, whose order of summation may change with its threads.
    energies = (halves * np.einsum("jpq,q->jp", phi**2, node_weights)).sum(axis=1)
    values, moments = (2 * halves[..., None] * np.einsum("jpq,nq->jpn", samples, modes) for samples in (phi, t * phi))
    return Expansion(centres, halves, np.maximum(_sizes(values), _sizes(moments)), values, moments), np.log(energies)


def _sizes(coefficients: Matrix) -> Whole:
    magnitudes = np.abs(coefficients)
    counts = magnitudes > _NEGLIGIBLE * magnitudes.max(axis=(1, 2), keepdims=True)
    orders = np.arange(1, coefficients.shape[2] + 1)
    # At least two, as the recurrence starts from two.
    sizes: Whole = np.where(counts.any(axis=2), np.maximum((counts * orders).max(axis=2), 2), 0)
    return sizes


@cache
def _legendre() -> tuple[Matrix, Matrix, Matrix]:
    """Return Gauss–Legendre nodes and weights, (q,), and functionals of coefficients with the sign of iⁿ, (n, q)."""
    nodes, _ = np.polynomial.legendre.leggauss(_NODES)
    orders = np.arange(_NODES)[:, None]
    polynomials = np.polynomial.legendre.legvander(nodes, _NODES - 1).T
    # As Christoffel numbers, which have two correct digits more than the weights that come with the nodes.
    node_weights = 1 / ((orders + 0.5) * polynomials**2).sum(axis=0)
    signs = np.where(orders % 4 < 2, 1.0, -1.0)
    return nodes, node_weights, (signs * (orders + 0.5) * polynomials * node_weights)[:_MODES]


@jit
def _spherical_bessel(x: float, j: Matrix) -> None:
    """Fill j with j_0(x), j_1(x), …, at least two; x ≥ 0."""
    n = j.shape[0]
    if x < _SERIES_BELOW:
        power = 1.0
        for k in range(n):
            j[k] = power * (1 - x * x / (4 * k + 6) * (1 - x * x / (8 * k + 20)))
            power *= x / (2 * k + 3)
    elif x > n:  # upwards, stable below the order x
        j[0] = math.sin(x) / x
        j[1] = (j[0] - math.cos(x)) / x
        for k in range(2, n):
            j[k] = (2 * k - 1) / x * j[k - 1] - j[k - 2]
    else:  # downwards from an arbitrary start (Miller), scaled to the larger of the two lowest orders
        above, here = 0.0, 1e-150
        for k in range(n + _HEAD_START, -1, -1):
            if k < n:
                j[k] = here
            above, here = here, (2 * k + 1) / x * here - above
        zeroth = math.sin(x) / x
        first = (zeroth - math.cos(x)) / x
        scale = zeroth / j[0] if abs(zeroth) > abs(first) else first / j[1]
        for k in range(n):
            j[k] *= scale


@jit
def integrate(panels: Expansion, z: Matrix, g: Matrix, slopes: Matrix) -> None:
    """Write g_j and ∂g_j/∂z at z = b_j w_j, (n, d), to `g` and `slopes`, (n, d). Releases the interpreter lock."""
    centres, halves, sizes, values, moments = panels
    bessel = np.empty(values.shape[2])
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            size = abs(z[i, j])
            total, slope = 0.0, 0.0
            for p in range(centres.shape[1]):
                n = sizes[j, p]
                if n == 0:
                    continue
                _spherical_bessel(size * halves[j, p], bessel[:n])
                # Even orders form the real part, odd ones the imaginary part.
                real, imaginary, moment_real, moment_imaginary = 0.0, 0.0, 0.0, 0.0
                for k in range(0, n, 2):
                    real += values[j, p, k] * bessel[k]
                    moment_real += moments[j, p, k] * bessel[k]
                for k in range(1, n, 2):
                    imaginary += values[j, p, k] * bessel[k]
                    moment_imaginary += moments[j, p, k] * bessel[k]
                cosine, sine = math.cos(size * centres[j, p]), math.sin(size * centres[j, p])
                total += cosine * real - sine * imaginary
                slope -= sine * moment_real + cosine * moment_imaginary
            g[i, j] = total
            slopes[i, j] = slope if z[i, j] >= 0 else -slope


# Parts of the work per thread, so that all threads end together; and the factors for which a thread is worth its cost.
_PARTS, _WORTH_A_THREAD = 4, 1 << 16
# Work of a thread between two pauses, a tenth of a second or less: factors of pairs of points, and integrals.
_FACTORS_PER_PAUSE, _INTEGRALS_PER_PAUSE = 1 << 23, 1 << 17
# Largest sum of weights: its square, and small multiples of the square, are in the range of float64.
_MOST_WEIGHT = 1e150
# Cost of writing an entry of a matrix and its mirror image, in factors.
_FACTORS_PER_ENTRY = 32
_NO_MATRIX = np.empty((0, 0))
_Told = Callable[[int], None]  # a pause that receives the number of finished rows
# Half the largest float64: below it, neither the difference of two frequencies nor its product with the box overflows.
_MOST = np.finfo(np.float64).max / 2


def product_kernel(kernel: AnyKernel, input_dim: int) -> ProductKernel:
    """Return a kernel as a product of kernels of `input_dim` single coordinates; InvalidInput if it is no product."""
    if isinstance(kernel, ShiftInvariantKernel):
        kernel.check(input_dim)
        block = kernel.blocks(input_dim)[0]
        if block.coordinates is None and isinstance(block.kernel, ProductKernel):
            return block.kernel
    raise InvalidInput(f"expected kernel gaussian, laplacian, cauchy or correlation_rbf, got {kernel.kind}", "/kernel")


class Measured(TypedDict):
    """Box discrepancy of one frequency set, in the forms that people compare."""

    discrepancy_squared: Annotated[
        float | None, Field(description="D² of theorem 7; null where it leaves the range of float64.")
    ]
    log_discrepancy_squared: Annotated[float | None, Field(description="log D²; null where D² is 0.")]
    normalized: Annotated[
        float,
        Field(
            description="N, the mean of |k(u) − k̂(u)|² over the box. k̂ is the complex sum; form cos_sin has its real "
            "part, whose error is no larger."
        ),
    ]
    expected_monte_carlo: Annotated[
        float, Field(description="The expectation of N for as many independent draws from the kernel's law.")
    ]
    ratio: Annotated[float | None, Field(description="N over that; null where that is 0.")]


class BoxDiscrepancy:
    """N = A − 2 Σ_l ξ_l v_l + Σ_{l,m} ξ_l ξ_m H_lm of frequencies w_l with weights ξ_l, for one kernel and one box.

    N is the mean over u uniform in the box Π[−b_j, b_j] of |k(u) − Σ_l ξ_l e^{−iw_l·u}|² (theorem 12), that is π^d Π
    b_j⁻¹ D². A, v_l and H_lm lie in [−1, 1]. H_lm = Π_j sinc(b_j(w_lj − w_mj)), v_l = Π_j g_j(w_lj) and A = Π_j A_j,
    where g_j(w) is the mean of φ_j(β) cos(wβ), and A_j that of φ_j(β)², over β in [0, b_j].

    N is a difference of sums up to (Σ|ξ|)² of products of d factors. Each factor is rounded and multiplied, and s
    products are added. A value below 4 (2d + s) 2⁻⁵³ (Σ|ξ|)² is a rounding error, and may be negative.

    Slow methods have an argument `pause`: it is called between steps of at most a quarter of a second.

    Args:
        kernel: one that is a product over the coordinates.
        box: b_j from 0 to half the largest float64, in the unit of coordinate j of the rows that the kernel compares,
            (d,); unit rows for correlation_rbf. Differences of rows with column ranges b_j lie inside. A coordinate
            with b_j = 0 has no part in N.
        threads: number of threads; the result does not depend on it.

    Raises:
        InvalidInput: the kernel is no product, or an entry of the box is negative, too large or not finite.
    """

    def __init__(self, kernel: AnyKernel, box: Matrix, threads: int = 1) -> None:
        self.box: Matrix = np.ascontiguousarray(box, dtype=np.float64)
        wrong = np.flatnonzero(~((self.box >= 0) & (self.box <= _MOST)))
        if wrong.size:
            detail = f"expected 0 to {_MOST:.3g} in the box, got {self.box[wrong[0]]} in entry {wrong[0]}"
            raise InvalidInput(detail, "/box")
        self._threads = threads
        product = product_kernel(kernel, len(self.box))
        with np.errstate(over="ignore"):  # ratios that overflow are limited to _MOST
            ratios = np.minimum(self.box / product.scales(len(self.box)), _MOST)
        self._panels, log_energies = expansion(product, ratios)
        self.log_energy = float(log_energies.sum())
        """log A."""
        self.energy = math.exp(self.log_energy)

    def gram(self, frequencies: Matrix, pause: Pause = no_pause) -> Matrix:
        """Return H, (s, s), of frequencies (s, d): positive semidefinite, singular up to rounding if s is large."""
        s = len(frequencies)
        gram = np.empty((s, s))
        self._row_sums(self._points(frequencies), np.ones(s), np.empty(s), lambda _: pause(), gram)
        return gram

    def means(self, frequencies: Matrix, pause: Pause = no_pause) -> Matrix:
        """Return v, (s,), of frequencies (s, d)."""
        return np.asarray(self._factors(frequencies, pause)[0].prod(axis=1), np.float64)

    def means_and_gradients(self, frequencies: Matrix, pause: Pause = no_pause) -> tuple[Matrix, Matrix]:
        """Return v, (s,), and ∂v_l/∂w_lj, (s, d)."""
        # The product of all other factors without division, as a factor may be 0.
        factors, slopes = self._factors(frequencies, pause)
        before, behind = np.ones_like(factors), np.ones_like(factors)
        np.cumprod(factors[:, :-1], axis=1, out=before[:, 1:])
        np.cumprod(factors[:, :0:-1], axis=1, out=behind[:, -2::-1])
        slopes *= before
        slopes *= behind
        slopes *= self.box
        means: Matrix = before[:, -1] * factors[:, -1]
        return means, slopes

    def evaluate(self, frequencies: Matrix, weights: Matrix | None = None, pause: Pause = no_pause) -> float:
        """Return N of frequencies (s, d) and weights (s,), 1/s if not given."""
        sums = np.empty(len(frequencies))
        return self._evaluate(frequencies, weights_of(frequencies, weights), sums, lambda _: pause())

    def value_and_gradient(
        self, frequencies: Matrix, weights: Matrix | None = None, pause: Pause = no_pause
    ) -> tuple[float, Matrix]:
        """Return N and its gradient by every frequency, (s, d) (proposition 16, with the normalisation of N).

        The gradient by the weights is 2(Hξ − v), from `gram` and `means`.
        """
        points, weights = self._points(frequencies), weights_of(frequencies, weights)
        pulls, gradients = self._pulls(points, weights, points, pause)
        means, slopes = self.means_and_gradients(frequencies, pause)
        pulls -= 2 * means
        gradients -= slopes
        gradients *= 2 * weights[:, None]
        return self.energy + math.fsum(weights * pulls), gradients

    def pulls_of(self, frequencies: Matrix, weights: Matrix) -> Pulls:
        """Return the function that computes the pulls of a fixed set on n frequencies, in O(n s d)."""
        fixed = self._points(frequencies)
        return lambda moving: self._pulls(fixed, weights, self._points(moving))

    def own_terms(self, frequencies: Matrix) -> tuple[Matrix, Matrix]:
        """Return zeros for H(x, x) − 1 and its gradients, as H(x, x) is 1 for all x."""
        return np.zeros(len(frequencies)), np.zeros(frequencies.shape)

    def measure(self, frequencies: Matrix, weights: Matrix | None = None, progress: Progress | None = None) -> Measured:
        """Return N, D² = N Π b_j/π, and the N expected of independent draws, (1 − A)/s.

        N is 0 where rounding made it negative. Arguments are those of `evaluate`. `progress` receives the number of
        frequencies that are compared with all those before them. InvalidInput if the weights are so large that N leaves
        the range of float64.
        """
        progress, s = progress or Progress(), len(frequencies)
        state = unpack_arrays(progress.restore())
        sums, begun = state.get("sums", np.zeros(s)), int(state.get("done", 0))

        def keep(done: int) -> None:
            progress.report(done, s)
            progress.checkpoint(partial(pack_arrays, sums=sums, done=np.array(done)))

        weights = weights_of(frequencies, weights)
        if (together := float(np.abs(weights).sum())) > _MOST_WEIGHT:
            reason = f"errors have the square of that, for which {_MOST_WEIGHT:.3g} is the most"
            raise InvalidInput(f"the weights of the map are {together:.3g} together; {reason}")
        normalized = max(0.0, self._evaluate(frequencies, weights, sums, keep, begun))
        expected = (0.0 - math.expm1(min(0.0, self.log_energy))) / s  # a minus sign would turn 0 into −0
        log_squared = squared = None
        if normalized > 0 and self.box.all():
            log_squared = math.log(normalized) + float(np.log(self.box / np.pi).sum())
            limits = np.finfo(np.float64)
            if math.log(limits.tiny) < log_squared < math.log(limits.max):
                squared = math.exp(log_squared)
        return Measured(
            discrepancy_squared=squared,
            log_discrepancy_squared=log_squared,
            normalized=normalized,
            expected_monte_carlo=expected,
            ratio=normalized / expected if expected > 0 else None,
        )

    def _pulls(self, fixed: Points, weights: Matrix, moving: Points, pause: Pause = no_pause) -> tuple[Matrix, Matrix]:
        """Return Σ_l ξ_l H(w_l, x) for each of n moving points x, (n,), and its gradients by x, (n, d)."""
        d, n = moving.coordinates.shape
        pulls, gradients = np.empty(n), np.empty((n, d))

        def work(rows: slice) -> None:
            sinc_gradients(self.box, fixed, weights, moving, rows.start, pulls[rows], gradients[rows])

        self._share_out(work, n, n * fixed.coordinates.size, _FACTORS_PER_PAUSE, lambda _: pause())
        return pulls, gradients

    def _points(self, frequencies: Matrix) -> Points:
        """Return frequencies (s, d) with their sines and cosines; InvalidInput if a product b_j w_j leaves float64."""
        return prepare_points(self._check(frequencies), self.box)

    def _check(self, frequencies: Matrix) -> Matrix:
        largest = np.abs(frequencies).max(axis=0, initial=0.0)
        if not (largest <= _MOST / np.maximum(1.0, self.box)).all():
            raise InvalidInput("a frequency times its side of the box leaves the range of float64", "/box")
        return frequencies

    def _factors(self, frequencies: Matrix, pause: Pause) -> tuple[Matrix, Matrix]:
        """Return g_j(w_lj) and its derivative by b_j w_lj, both (s, d)."""
        # In C order, whatever the order of the frequencies, as the loop is compiled for that.
        phases = np.multiply(self._check(frequencies), self.box, order="C")
        factors, slopes = np.empty_like(phases), np.empty_like(phases)

        def work(rows: slice) -> None:
            integrate(self._panels, phases[rows], factors[rows], slopes[rows])

        self._share_out(work, len(phases), phases.size, _INTEGRALS_PER_PAUSE, lambda _: pause())
        return factors, slopes

    def _evaluate(self, frequencies: Matrix, weights: Matrix, sums: Matrix, pause: _Told, first: int = 0) -> float:
        """Return N; `sums` holds Σ_{l<m} ξ_l H_lm up to row `first`. Each pair l < m is computed once."""
        self._row_sums(self._points(frequencies), weights, sums, pause, first=first)
        pulls = 2 * sums
        pulls += weights
        pulls -= 2 * self.means(frequencies, lambda: pause(len(sums)))
        return self.energy + math.fsum(weights * pulls)

    def _row_sums(
        self, points: Points, weights: Matrix, sums: Matrix, pause: _Told, gram: Matrix = _NO_MATRIX, first: int = 0
    ) -> None:
        """Fill `sums` with Σ_{l<m} ξ_l H_lm from row `first` on, and `gram` with H unless it is empty."""

        def work(rows: slice) -> None:
            sinc_rows(self.box, points, rows.start, rows.stop, weights, sums[rows], gram)

        per_pair = len(self.box) + (_FACTORS_PER_ENTRY if gram.size else 0)
        self._share_out(work, len(sums), len(sums) ** 2 * per_pair // 2, _FACTORS_PER_PAUSE, pause, first)

    def _share_out(
        self, work: Callable[[slice], None], n: int, n_factors: int, per_pause: int, pause: _Told, first: int = 0
    ) -> None:
        """Call `work` on slices of n rows; in each step the last rows, which may be longest, come first.

        No sum spans two rows.
        """
        threads = min(self._threads, max(1, n_factors // _WORTH_A_THREAD))
        steps = -(-n_factors // (per_pause * threads))
        for step in row_blocks(n - first, -(-n // max(1, steps))):
            start, rows = first + step.start, step.stop - step.start
            parts = row_blocks(rows, -(-rows // (_PARTS * threads)) if threads > 1 else rows)
            for_each(work, reversed([slice(start + at.start, start + at.stop) for at in parts]), threads)
            pause(first + step.stop)
