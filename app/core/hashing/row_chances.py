"""How often the codes of different samples agree, reckoned from the rows that were sampled."""

import numpy as np

from app.core.arrays import Rows, row_blocks
from app.core.compiled import compiled
from app.core.hashing.encodings import Encoder
from app.core.hashing.parameter_stream import Whole
from app.core.hashing.sampling import entries
from app.core.kernels.base import Matrix
from app.core.kernels.gmm import GeneralizedMinMax

# Entries of both rows of pairs that are looked at together.
_ENTRIES_PER_BLOCK = 1 << 18
_ALL_BITS = -1


def row_chances(by: Encoder, kernel: GeneralizedMinMax, x: Rows, y: Rows) -> Matrix:
    """The probability that codes of row i of x and row i of y are equal if their samples (i*, t*) differ, (n,).

    Codes that mix whole samples are then equal at the rate 2^−bits. Those of i* are so more often where few coordinates
    carry the weight. Let points arrive on intervals ũ_i and ṽ_i, evenly, and a row's sample be the first on its own:
    this is consistent weighted sampling as Manasse, McSherry and Talwar (2010) made it. Samples differ if the first
    point of all is where one row is longer, on max(ũ_i − ṽ_i, 0) or max(ṽ_i − ũ_i, 0). The other row's sample comes
    later, with the index i at the rate ṽ_i/Σṽ, or ũ_i/Σũ. GCWS has the same law for each row, but not for both: its i*
    are equal more often, by .002 on average and up to .03 on nine data sets.

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
        _fill(u.indptr, u.coordinate, v.indptr, v.coordinate, weights[0], weights[1], units, bits, found[block])
    return found + (1 - found) * mixed


@compiled
def _fill(
    x_ends: Whole,
    x_coordinates: Whole,
    y_ends: Whole,
    y_coordinates: Whole,
    u: Matrix,
    v: Matrix,
    units: Matrix,
    bits: int,
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
        out[row] = (more_alike / of_y + less_alike / of_x) / different if different > 0 else 0.0
