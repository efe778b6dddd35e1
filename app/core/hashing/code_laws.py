"""What agreeing codes tell of the kernel of two rows, and how often codes of different samples agree.

A law is for those who keep codes and compare them; chances are reckoned from the rows that were sampled.
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

# Of a sample (i*, t*) whole: estimates are unbiased, and one in 256 other samples has the same.
_BITS = 8


class CodeLaw(ABC):
    """How often s codes of two rows agree, each written as `encoder` says, and the kernel from that."""

    encoder: Encoder
    """Encoding `packed`, of 1, 2, 4, 8 or 16 bits."""

    def __init__(self, s: int) -> None:
        self.s = s

    @abstractmethod
    def rates(self, kernels: Matrix) -> Matrix:
        """How often codes of rows of these kernels agree, (n,)."""

    @abstractmethod
    def kernel(self, counts: Whole) -> Estimate:
        """The kernel of rows of which so many codes agree, with its standard error, (n,)."""


class MinMaxLaw(CodeLaw):
    """Of samples: these agree as often as the min-max kernel says, and others by chance."""

    encoder = Encoder(Encoding.packed, _BITS, BitsOf.pair)
    _chance = 2.0**-_BITS

    def rates(self, kernels: Matrix) -> Matrix:
        """The kernel, and chance for the rest."""
        found: Matrix = kernels * (1 - self._chance) + self._chance
        return found

    def kernel(self, counts: Whole) -> Estimate:
        """The rate of agreement, freed from chance."""
        return kernel_estimate(np.asarray(counts) / self.s, self.s, self._chance)


class SignedLaw(CodeLaw):
    """Of signed codes, a bit a frequency, by the law of the kernel."""

    encoder = SIGNED

    def __init__(self, s: int, law: SignLaw) -> None:
        super().__init__(s)
        self._law = law

    def rates(self, kernels: Matrix) -> Matrix:
        """What is not differing."""
        return 1 - self._law.rates(kernels)

    def kernel(self, counts: Whole) -> Estimate:
        """By inversion of the law."""
        return kernel_of_bits(np.asarray(counts), self.s, self._law)


# Entries of both rows of pairs that are looked at together.
_ENTRIES_PER_BLOCK = 1 << 18
_ALL_BITS = -1
# Coordinates that are both i* of different samples no more often, or so far apart, need no close look.
_LEAST_CORRECTED, _LARGEST_REST = 2e-4, 1e100
# Quantiles of the law of r, Gamma(2, 1).
_R: Matrix = np.asarray(gammaincinv(2.0, (np.arange(12) + 0.5) / 12), np.float64)


def row_chances(by: Encoder, kernel: GeneralizedMinMax, x: Rows, y: Rows, arrives_first: bool = False) -> Matrix:
    """The probability that codes of row i of x and row i of y are equal if their samples (i*, t*) differ, (n,).

    Codes that mix whole samples are then equal at the rate 2^−bits. Those of i* are so more often where few coordinates
    carry the weight. Let points arrive on intervals ũ_i and ṽ_i, evenly, and a row's sample be the first on its own:
    this is consistent weighted sampling as Manasse, McSherry and Talwar (2010) made it. Samples differ if the first
    point of all is where one row is longer, on max(ũ_i − ṽ_i, 0) or max(ṽ_i − ũ_i, 0). The other row's sample comes
    later, with the index i at the rate ṽ_i/Σṽ, or ũ_i/Σũ. For samples that arrive first so, as darts do, the rate is
    exact. GCWS has the same law for each row, but not for both: what both rows draw in one coordinate hangs together
    (`_own`). With that the rate is right to .001 on average. It is off by up to .12 where two to eight coordinates
    carry the weight and one row is much longer than the other in all of them: there what is drawn in one coordinate
    hangs together with the others as well.

    Rows (n, d), dense or sparse, all have a sample. The probability of rows that never differ is 0.
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
        # Every row has its largest entry for its unit, and a pair's units are told in the larger of both: no power
        # overflows, and no row is lost.
        weights = [
            np.exp(rows.logs - np.repeat(top, np.diff(rows.indptr))) for rows, top in zip((u, v), tops, strict=True)
        ]
        units = np.exp(np.stack(tops) - np.maximum(*tops))
        r = _R[: 0 if arrives_first else None]
        _fill(u.indptr, u.coordinate, v.indptr, v.coordinate, weights[0], weights[1], units, bits, r, found[block])
    return found + (1 - found) * mixed


@jit
def _own(ratio: float, first_rest: float, second_rest: float, r: Matrix) -> float:
    """The probability that two rows sample one coordinate, where their entries are `ratio` > 1 apart, at different t.

    Of the row with the larger entry and of the other, `rest` is what its other entries have, over its entry here;
    of the first row, only what they have beyond the other row's.

    For given r, t differs if a whole step of r lies between the entries: L = log ratio, and ⌊L/r⌋ or one more of them,
    as β has it. Then a of the other row is larger by r times these steps, and c, of the law Gamma(2, 1), drops out as
    1/(1 + w)². What is left is integrated over β exactly, and summed over quantiles of r, of that law too.
    """
    log_ratio, found, differing = np.log(ratio), 0.0, 0.0
    for k in range(r.shape[0]):
        steps = log_ratio / r[k]
        differing += min(steps, 1.0)
        part = steps - np.floor(steps)
        below, until, end = np.exp(-r[k]), np.exp(r[k] * part), np.exp(r[k])
        found += _over_offsets(below * (first_rest + second_rest * end / until), 1.0, until) / r[k]
        if steps >= 1:
            found += _over_offsets(below * (first_rest + second_rest / until), until, end) / r[k]
    # Over all r, t differs with probability 1 - 1/ratio.
    mean: float = found / differing * (1 - 1 / ratio)
    return mean


@jit
def _over_offsets(rest: float, low: float, high: float) -> float:
    """∫ dy / (y (1 + rest·y)²) from low to high."""
    if rest > _LARGEST_REST:
        return 0.0
    of_low, of_high = 1 / (1 + rest * low), 1 / (1 + rest * high)
    integral: float = np.log(high * of_high / (low * of_low)) + of_high - of_low
    return integral


@jit
def _own_beyond(
    x_coordinates: Whole,
    y_coordinates: Whole,
    u: Matrix,
    v: Matrix,
    ends: tuple[int, int, int, int],
    units: Matrix,
    sums: tuple[float, float, float],
    r: Matrix,
) -> float:
    """How much more often than first arrivals would the rows of a pair sample one coordinate, if samples differ.

    `ends` is where their entries begin and end; `sums` are Σũ, Σṽ and Σ|ũ − ṽ|.
    """
    i, x_end, j, y_end = ends
    of_x, of_y, different = sums
    shared, found = (of_x + of_y - different) / 2, 0.0
    while i < x_end and j < y_end:
        if x_coordinates[i] == y_coordinates[j]:
            here, there = u[i] * units[0], v[j] * units[1]
            large, small, of_large, of_small = (here, there, of_x, of_y) if here > there else (there, here, of_y, of_x)
            by_arrivals = (large - small) / different * (small / of_small)
            if by_arrivals > _LEAST_CORRECTED and large < _LARGEST_REST * small:
                first_rest = max(of_large - large - shared + small, 0.0) / large
                exact = _own(large / small, first_rest, max(of_small - small, 0.0) / small, r)
                found += exact * (of_x + of_y + different) / (2 * different) - by_arrivals
            i, j = i + 1, j + 1
        elif x_coordinates[i] < y_coordinates[j]:
            i += 1
        else:
            j += 1
    return found


@jit
def _fill(
    x_ends: Whole,
    x_coordinates: Whole,
    y_ends: Whole,
    y_coordinates: Whole,
    u: Matrix,
    v: Matrix,
    units: Matrix,
    bits: int,
    r: Matrix,
    out: Matrix,
) -> None:
    """Fill in how often i* have these bits in common if samples differ, for rows of the entries u and v in `units`."""
    # Of each class of coordinates with the same bits: what x has more than y, y more than x, and what each has.
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
        for one in range(bits + 1):
            more_alike += classes[0, one] * classes[3, one]
            less_alike += classes[1, one] * classes[2, one]
            for k in range(4):
                classes[k, one] = 0.0
        if different > 0:
            pair = of_x * units[0, row], of_y * units[1, row], different
            alike = (more_alike / of_y + less_alike / of_x) / different
            ends = x_ends[row], x_ends[row + 1], y_ends[row], y_ends[row + 1]
            out[row] = alike
            if r.shape[0]:
                out[row] += _own_beyond(x_coordinates, y_coordinates, u, v, ends, units[:, row], pair, r)
        else:
            out[row] = 0.0
