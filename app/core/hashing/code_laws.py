"""Collision models: the kernel of two rows from agreeing codes, and how often codes of different samples agree.

`CodeLaw` is for callers that keep only codes and compare them; `row_chances` needs the rows that were sampled.
"""

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import gammaincinv

from app.core.arrays import Matrix, Rows, Whole, row_blocks
from app.core.compiled import jit
from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.hashing.estimates import Estimate, kernel_estimate
from app.core.hashing.sampling import entries
from app.core.hashing.signed_codes import SIGNED, SignLaw, kernel_of_bits
from app.core.kernels.gmm import GeneralizedMinMax

# Bits of a code that mixes the whole sample (i*, t*): estimates are unbiased; 1 in 256 other samples has the same code.
_BITS = 8


class CodeLaw(ABC):
    """Collision model: how often s codes of two rows, written by `encoder`, agree, and the kernel from that."""

    encoder: Encoder
    """Encoding `packed`, of 1, 2, 4, 8 or 16 bits."""

    def __init__(self, s: int) -> None:
        self.s = s

    @abstractmethod
    def rates(self, kernels: Matrix) -> Matrix:
        """Return how often codes of rows with these kernels agree, (n,)."""

    @abstractmethod
    def kernel(self, counts: Whole) -> Estimate:
        """Estimate the kernel of rows, with its standard error, from the numbers of codes that agree, (n,)."""


class MinMaxLaw(CodeLaw):
    """Collision model of samples, which agree at the rate of the min-max kernel; codes of others agree by chance."""

    encoder = Encoder(Encoding.packed, _BITS, BitsOf.pair)
    _chance = 2.0**-_BITS

    def rates(self, kernels: Matrix) -> Matrix:
        """Return the kernel plus chance collisions of the remaining codes."""
        found: Matrix = kernels * (1 - self._chance) + self._chance
        return found

    def kernel(self, counts: Whole) -> Estimate:
        """Estimate the kernel from the rate of agreement, corrected for chance."""
        return kernel_estimate(np.asarray(counts) / self.s, self.s, self._chance)


class SignedLaw(CodeLaw):
    """Collision model of signed codes, one bit per frequency, by the `SignLaw` of the kernel."""

    encoder = SIGNED

    def __init__(self, s: int, law: SignLaw) -> None:
        super().__init__(s)
        self._law = law

    def rates(self, kernels: Matrix) -> Matrix:
        """Return 1 minus the rate at which bits differ."""
        return 1 - self._law.rates(kernels)

    def kernel(self, counts: Whole) -> Estimate:
        """Estimate the kernel by inverting the law."""
        return kernel_of_bits(np.asarray(counts), self.s, self._law)


# Entries of a block of pairs, of both rows.
_ENTRIES_PER_BLOCK = 1 << 18
_ALL_BITS = -1
# A coordinate needs no correction if it is i* of one row this seldom, or if its entries are alike and it is i* of two
# different samples this seldom.
_LEAST_CORRECTED, _ALIKE = 2e-4, 1.2
_LARGEST_REST = 1e100
# Quantiles of the law of r, Gamma(2, 1): few, and many for entries that differ by a large factor.
_FEW_R, _MANY_R = 12, 48
_R: Matrix = np.concatenate([gammaincinv(2.0, (np.arange(n) + 0.5) / n) for n in (_FEW_R, _MANY_R)])
_LARGE_LOG_RATIO = 3.0


def row_chances(by: Encoder, kernel: GeneralizedMinMax, x: Rows, y: Rows, arrives_first: bool = False) -> Matrix:
    """Compute the probability that codes of row i of x and of y are equal if their samples (i*, t*) differ, (n,).

    Codes that mix whole samples are then equal at the rate 2^−bits. Codes of i* are equal more often if few coordinates
    carry the weight. Let points arrive uniformly on intervals of lengths ũ_i and ṽ_i, and a row's sample be the first
    point on its own intervals: this is the consistent weighted sampling of Manasse, McSherry and Talwar (2010). Samples
    differ if the first point of all is where one row is longer, on max(ũ_i − ṽ_i, 0) or max(ṽ_i − ũ_i, 0). The other
    row's sample comes later, with the index i at the rate ṽ_i/Σṽ, or ũ_i/Σũ. For samples that are such first arrivals
    (`arrives_first`), as darts are, the rate is exact. GCWS has the same law for each row, but not for both jointly:
    their draws in one coordinate are dependent (`_own`). With this correction the rate is right to .001 on average.
    It is off by up to .16 if two or three coordinates carry the weight, or if one row is much longer than the other in
    all coordinates: there the draws in one coordinate also depend on those in the others.

    Rows (n, d), dense or sparse, must all have a sample. If samples never differ, i* count as equal at the rate 0.
    """
    n = int(x.shape[0])
    mixed = 2.0**-by.bits if by.bits and not by.shows_sign else 0.0
    if by.tells_samples:
        return np.full(n, mixed)
    found, size = np.empty(n), int(x.size + y.size)
    bits = (1 << by.bits) - 1 if by.shows_sign and 2 * x.shape[1] > 1 << by.bits else _ALL_BITS
    for block in row_blocks(n, _ENTRIES_PER_BLOCK * n // max(1, size)):
        u, v = entries(x[block], kernel), entries(y[block], kernel)
        tops = [np.maximum.reduceat(rows.logs, rows.indptr[:-1]) for rows in (u, v)]
        # The unit of each row is its largest entry, and the two units of a pair are relative to the larger one: no
        # power overflows, and no row vanishes.
        weights = [
            np.exp(rows.logs - np.repeat(top, np.diff(rows.indptr))) for rows, top in zip((u, v), tops, strict=True)
        ]
        units = np.exp(np.stack(tops) - np.maximum(*tops))
        r, log_ratios = _R[: 0 if arrives_first else None], tops[0] - tops[1]
        ends = u.indptr, u.coordinate, v.indptr, v.coordinate
        _fill(*ends, weights[0], weights[1], units, log_ratios, bits, r, found[block])
    return found + (1 - found) * mixed


@jit
def _own(log_ratio: float, first_rest: float, second_rest: float, r: Matrix) -> float:
    """Return the probability that two rows sample this coordinate at different t; `log_ratio` > 0 is of their entries.

    The first row has the larger entry. Each `rest` is the sum of a row's other entries divided by its entry here; for
    the first row, only the excess over the second row's entries is summed.

    For given r, t differs if there are steps of r between the entries: ⌊L/r⌋ or one more, depending on β, with L = log
    ratio. Then a of the other row is larger by r times the number of steps, and integrating over c, which is
    Gamma(2, 1), leaves 1/(1 + w)². This is integrated over β exactly, and summed over quantiles of r, also Gamma(2, 1).
    """
    found, differing = 0.0, 0.0
    for k in range(r.shape[0]):
        steps = log_ratio / r[k]
        differing += min(steps, 1.0)
        part = steps - np.floor(steps)
        below, until, end = np.exp(-r[k]), np.exp(r[k] * part), np.exp(r[k])
        found += _over_offsets(below * (first_rest + second_rest * end / until), 1.0, until) / r[k]
        if steps >= 1:
            found += _over_offsets(below * (first_rest + second_rest / until), until, end) / r[k]
    # Over all r, t differs with probability 1 - 1/ratio.
    mean: float = found / differing * -np.expm1(-log_ratio)
    return mean


@jit
def _over_offsets(rest: float, low: float, high: float) -> float:
    """Return ∫ dy / (y (1 + rest·y)²) from low to high."""
    if rest > _LARGEST_REST:
        return 0.0
    of_low, of_high = 1 / (1 + rest * low), 1 / (1 + rest * high)
    integral: float = np.log(high * of_high / (low * of_low)) + of_high - of_low
    return integral


@jit
def _own_rates(
    x_coordinates: Whole,
    y_coordinates: Whole,
    u: Matrix,
    v: Matrix,
    ends: tuple[int, int, int, int],
    units: Matrix,
    log_ratio: float,
    sums: tuple[float, float, float],
    r: Matrix,
) -> tuple[float, float]:
    """Return how often a pair samples one coordinate if samples differ: for first arrivals, and how much more often.

    `ends` is where the entries of both rows begin and end; `log_ratio` is that of the units of x and y; `sums` are Σũ
    and Σṽ, each in its own unit, and Σ|ũ − ṽ|.
    """
    i, x_end, j, y_end = ends
    of_x, of_y, different = sums
    both = of_x * units[0] + of_y * units[1]
    shared, arrivals, more = (both - different) / 2, 0.0, 0.0
    while i < x_end and j < y_end:
        if x_coordinates[i] == y_coordinates[j]:
            here, there = u[i] * units[0], v[j] * units[1]
            of_here, of_there = u[i] / of_x, v[j] / of_y
            x_is_larger = here > there
            large, small = (here, there) if x_is_larger else (there, here)
            of_large, of_small = (of_here, of_there) if x_is_larger else (of_there, of_here)
            by_arrivals = (large - small) / different * of_small
            arrivals += by_arrivals
            is_alike = large < _ALIKE * small and by_arrivals < _LEAST_CORRECTED
            if large > small and min(of_large, of_small) > _LEAST_CORRECTED and not is_alike:
                first_rest = max(1 / of_large - 1 - (shared - small) / large, 0.0)
                apart = abs(log_ratio + np.log(u[i] / v[j]))
                quantiles = r[:_FEW_R] if apart < _LARGE_LOG_RATIO else r[_FEW_R:]
                exact = _own(apart, first_rest, 1 / of_small - 1, quantiles)
                more += exact * (both + different) / (2 * different) - by_arrivals
            i, j = i + 1, j + 1
        elif x_coordinates[i] < y_coordinates[j]:
            i += 1
        else:
            j += 1
    return arrivals, more


@jit
def _empty_classes(classes: Matrix, coordinates: Whole, bits: int) -> tuple[float, float]:
    """Set the sums of the classes of some coordinates to 0, and return the products of excesses and other entries."""
    more_alike = less_alike = 0.0
    for coordinate in coordinates:
        one = coordinate & bits
        more_alike += classes[0, one] * classes[3, one]
        less_alike += classes[1, one] * classes[2, one]
        for k in range(4):
            classes[k, one] = 0.0
    return more_alike, less_alike


@jit
def _fill(
    x_ends: Whole,
    x_coordinates: Whole,
    y_ends: Whole,
    y_coordinates: Whole,
    u: Matrix,
    v: Matrix,
    units: Matrix,
    log_ratios: Matrix,
    bits: int,
    r: Matrix,
    out: Matrix,
) -> None:
    """Fill in how often i* agree in these bits if samples differ, for rows with the entries u and v in `units`."""
    # Sums over each class of coordinates with the same bits: excess of x over y, of y over x, entries of x, and of y.
    classes = np.zeros((4, bits + 1))
    for row in range(out.shape[0]):
        i, j, x_end, y_end = x_ends[row], y_ends[row], x_ends[row + 1], y_ends[row + 1]
        of_x = of_y = more_alike = less_alike = different = 0.0
        while i < x_end or j < y_end:
            in_x = i < x_end and (j == y_end or x_coordinates[i] <= y_coordinates[j])
            in_y = j < y_end and (i == x_end or y_coordinates[j] <= x_coordinates[i])
            one = x_coordinates[i] & bits if in_x else y_coordinates[j] & bits
            here, there = u[i] if in_x else 0.0, v[j] if in_y else 0.0
            i, j = i + in_x, j + in_y
            excess = here * units[0, row] - there * units[1, row]
            more, less = max(excess, 0.0), max(-excess, 0.0)
            of_x, of_y, different = of_x + here, of_y + there, different + more + less
            if bits < 0:
                more_alike, less_alike = more_alike + more * there, less_alike + less * here
            else:
                classes[0, one] += more
                classes[1, one] += less
                classes[2, one] += here
                classes[3, one] += there
        if bits >= 0:
            of_more, of_less = _empty_classes(classes, x_coordinates[x_ends[row] : x_end], bits)
            more_alike, less_alike = more_alike + of_more, less_alike + of_less
            _empty_classes(classes, y_coordinates[y_ends[row] : y_end], bits)
        if different > 0:
            out[row] = alike = (more_alike / of_y + less_alike / of_x) / different
            if r.shape[0]:
                ends, sums = (x_ends[row], x_end, y_ends[row], y_end), (of_x, of_y, different)
                unit, log_ratio = units[:, row], log_ratios[row]
                own, more = _own_rates(x_coordinates, y_coordinates, u, v, ends, unit, log_ratio, sums, r)
                # The more often coordinates are equal, the less often are those unequal whose bits are.
                others = (alike - own) / (1 - own) if own < 1 else 0.0
                out[row] = min(1.0, own + more + max(others, 0.0) * max(1 - own - more, 0.0))
        else:
            out[row] = 0.0
