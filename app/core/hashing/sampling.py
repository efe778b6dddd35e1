"""The compiled inner loops of consistent weighted sampling (GMM paper, algorithm 1).

For each hash and each entry ũ_i > 0 of a row, t = ⌊p log ũ_i / r + β⌋ and a = log c − r(t + 1 − β); the sample
(i*, t*) is that of the smallest a, of equal ones the smallest i. The hash index is innermost and contiguous.
"""

import numpy as np
from numpy.typing import NDArray

from app.core.compiled import compiled
from app.core.hashing.parameter_stream import Word, sampling_parameters

Whole = NDArray[np.int64]
Table = NDArray[np.float64]


@compiled
def sample_rows(
    indptr: Whole,
    coordinates: Whole,
    logs: Table,
    r: Table,
    log_c: Table,
    beta: Table,
    first_hash: int,
    out: Whole,
) -> None:
    """Sample sparse rows with the parameters in tables.

    Args:
        indptr: row k has the entries indptr[k] … indptr[k + 1] − 1.
        coordinates: coordinate i of each entry, increasing within a row.
        logs: p·log ũ_i of each entry.
        r: draws from Gamma(2, 1), shape (coordinates, s).
        log_c: logarithms of draws from Gamma(2, 1), same shape.
        beta: draws from U(0, 1), same shape.
        first_hash: the hash of the first column of `out`.
        out: (rows, hashes, 2), receives (i*, t*), −1 for a row without entries.
    """
    n_hashes = out.shape[1]
    hashes = slice(first_hash, first_hash + n_hashes)
    smallest = np.empty(n_hashes)
    winner = np.empty(n_hashes, np.int64)
    for row in range(out.shape[0]):
        if indptr[row] == indptr[row + 1]:
            out[row] = -1
            continue
        smallest[:] = np.inf
        for entry in range(indptr[row], indptr[row + 1]):
            log_u = logs[entry]
            i = coordinates[entry]
            r_i, log_c_i, beta_i = r[i, hashes], log_c[i, hashes], beta[i, hashes]
            for h in range(n_hashes):
                t = np.floor(log_u / r_i[h] + beta_i[h])
                a = log_c_i[h] - r_i[h] * (t + 1.0 - beta_i[h])
                nearer = a < smallest[h]
                smallest[h] = a if nearer else smallest[h]
                winner[h] = entry if nearer else winner[h]
        for h in range(n_hashes):
            i = coordinates[winner[h]]
            out[row, h, 0] = i
            out[row, h, 1] = np.int64(np.floor(logs[winner[h]] / r[i, first_hash + h] + beta[i, first_hash + h]))


@compiled
def sample_columns(
    seed: Word, first_hash: int, rows: Whole, coordinates: Whole, logs: Table, index: Whole, level: Table
) -> None:
    """Sample sparse rows coordinate by coordinate, drawing the parameters of each once and keeping none.

    Args:
        seed: the map's seed.
        first_hash: the hash of the first column of `index` and `level`.
        rows: row of each entry.
        coordinates: coordinate i of each entry, in increasing order.
        logs: p·log ũ_i of each entry.
        index: (rows, hashes), receives i*; of a row without entries it stays as it is.
        level: (rows, hashes), receives t*.
    """
    n_rows, n_hashes = index.shape
    smallest = np.full((n_rows, n_hashes), np.inf)
    r, log_c, beta = np.empty(n_hashes), np.empty(n_hashes), np.empty(n_hashes)
    drawn = np.int64(-1)
    for entry in range(rows.shape[0]):
        i = coordinates[entry]
        if i != drawn:
            sampling_parameters(seed, i, first_hash, r, log_c, beta)
            drawn = i
        log_u = logs[entry]
        smallest_row, index_row, level_row = smallest[rows[entry]], index[rows[entry]], level[rows[entry]]
        for h in range(n_hashes):
            t = np.floor(log_u / r[h] + beta[h])
            a = log_c[h] - r[h] * (t + 1.0 - beta[h])
            nearer = a < smallest_row[h]
            smallest_row[h] = a if nearer else smallest_row[h]
            index_row[h] = i if nearer else index_row[h]
            level_row[h] = t if nearer else level_row[h]


@compiled
def count_collisions(x: Whole, y: Whole, out: Whole) -> None:
    """Add to out (n, m) the number of hashes whose samples in x (n, s, 2) and y (m, s, 2) agree."""
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            equal = 0
            for h in range(x.shape[1]):
                equal += (x[i, h, 0] == y[j, h, 0]) and (x[i, h, 1] == y[j, h, 1])
            out[i, j] += equal
