"""How far collision rates of codes are from the min-max kernel, on data."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Rows, row_blocks
from app.core.diagnostics.random_pairs import row_pairs
from app.core.errors import InvalidInput
from app.core.hashing.encodings import BitsOf, Encoder, Encoding, encoder
from app.core.hashing.estimates import Estimate, chances, collision_rate, kernel_estimate, odd_codes, rbf_estimate
from app.core.maps import FeatureMap
from app.core.progress import Parts, Progress

Numbers = NDArray[np.float64]

MOST_PAIRS = 100_000
# Codes compared at a time, and entries of rows.
_CODES_PER_BLOCK = _ENTRIES_PER_BLOCK = 1 << 20
# A sample and its code; of a pair, indices, kernels, rates and estimates, and these as they are kept.
_BYTES_PER_SAMPLE, _BYTES_PER_PAIR = 32, 700
# Both rows of as many pairs as are compared at a time.
_BLOCK_BYTES = 64 * _ENTRIES_PER_BLOCK
# An entry of a row of a pair, in multiplications.
_OPERATIONS_PER_ENTRY, _OPERATIONS_PER_SPARSE_ENTRY = 60, 600
# In the order in which they are found.
_PARTS = ("exact", "full", "zero_bit", "b_bit")
# The comparison of two codes, copied to where they are compared, in multiplications.
_OPERATIONS_PER_COMPARISON = 40


class Exact(TypedDict):
    """Mean of a kernel over the pairs."""

    mean: float


class Collisions(TypedDict):
    """Of one way to write codes: share of codes that agree, and mean, bias and RMS error of the estimate they make.

    Over the pairs that have an estimate; None where none has.
    """

    rate: float
    mean: float | None
    bias: float | None
    rms_error: float | None


class RbfEstimate(TypedDict):
    """The RBF kernel's own mean over the pairs, and mean, bias and RMS error of its estimate from full samples."""

    exact: float
    mean: float
    bias: float
    rms_error: float


class CollisionErrors(TypedDict):
    """The answer."""

    pairs: int
    exact: Exact
    full: Collisions
    zero_bit: Collisions
    b_bit: Collisions
    rbf: RbfEstimate | None


def collision_errors(
    feature_map: FeatureMap,
    rows: Rows,
    *,
    bits: int | None = None,
    bits_of: BitsOf | None = None,
    gamma: float | None = None,
    most_pairs: int = MOST_PAIRS,
    seed: int = 0,
    progress: Progress | None = None,
) -> CollisionErrors:
    """Collision rates over pairs of different rows, against the exact kernel.

    All pairs, or `most_pairs` of them drawn evenly. Samples (i*, t*) and i* alone are estimates as they are; what codes
    of b bits agree by chance is taken out of theirs. Pairs that one bit of the index says nothing of, as both rows are
    of one sign, have no such estimate. Means are over pairs at one seed of the map: pairs share rows and hashes, so the
    mean of the full samples is off by more than its pairs' number suggests.

    Args:
        feature_map: of kernel gmm.
        rows: behind the gate, 2 or more.
        bits: of the codes of b bits; 8 if not given.
        bits_of: what those are taken from; the index if not given.
        gamma: for power 1, of the RBF kernel e^(−γ(1 − ρ)) to estimate too (GMM paper, theorem 4).
        most_pairs: how many pairs to look at.
        seed: of the pairs.
        progress: told of, and given, what was found of the exact kernels and of each way to write codes.

    Raises:
        InvalidInput: fewer than 2 rows, rows without a sample, or gamma with another power than 1.
        InvalidOption: bits out of range.
    """
    n, s = rows.shape[0], feature_map.n_output
    if n < 2:
        raise InvalidInput(f"{n} rows came; pairs need 2", "/vectors")
    if gamma is not None and (refusal := feature_map.gamma_refusal()) is not None:
        raise InvalidInput(refusal, "/gamma")
    b_bit = encoder(Encoding.b_bit, bits, bits_of)
    feature_map.check_rows(rows, "/vectors")
    i, j = row_pairs(n, most_pairs, seed)
    progress = progress or Progress()
    parts = Parts(progress)

    def found(name: str, compute: Callable[[], object]) -> Iterator[Numbers]:
        progress.report(_PARTS.index(name), len(_PARTS))
        return (np.array(numbers) for numbers in parts.once(name, compute))

    exact, rbf = found("exact", partial(_exact, feature_map, rows, i, j, gamma))
    full_rate, _ = found("full", partial(_compared, feature_map, rows, Encoder(Encoding.pairs), i, j))
    zero_bit_rate, _ = found("zero_bit", partial(_compared, feature_map, rows, Encoder(Encoding.zero_bit), i, j))
    rate, n_odd = found("b_bit", partial(_compared, feature_map, rows, b_bit, i, j))
    full, zero_bit = (kernel_estimate(one, s, 0.0) for one in (full_rate, zero_bit_rate))
    odd = n_odd.astype(np.int64)
    chance = chances(b_bit, feature_map.spec.input_dim, s, odd[i], odd[j])
    return CollisionErrors(
        pairs=len(i),
        exact=Exact(mean=float(exact.mean())),
        full=_collisions(full.value, full, exact),
        zero_bit=_collisions(zero_bit.value, zero_bit, exact),
        b_bit=_collisions(rate, kernel_estimate(rate, s, chance), exact),
        rbf=None if gamma is None else _rbf(rbf_estimate(full, gamma).value, rbf),
    )


def collision_errors_operations(feature_map: FeatureMap, rows: Rows, most_pairs: int = MOST_PAIRS) -> int:
    """Multiplications that take as long as `collision_errors`."""
    n = max(2, rows.shape[0])
    pairs = min(most_pairs, n * (n - 1) // 2)
    per_entry = (
        _OPERATIONS_PER_SPARSE_ENTRY
        if feature_map.kernel.compares_sparse and not isinstance(rows, np.ndarray)
        else _OPERATIONS_PER_ENTRY
    )
    exact = per_entry * pairs * max(1, 2 * int(rows.size) // n)
    # Pairs are two words a code, the other codes one.
    compared = 4 * _OPERATIONS_PER_COMPARISON * pairs * feature_map.n_output
    return int(3 * feature_map.hash_operations(rows) + exact + compared)


def collision_errors_bytes(feature_map: FeatureMap, n: int, most_pairs: int = MOST_PAIRS) -> int:
    """The most memory that `collision_errors` takes for n rows: all their samples, and what is known of the pairs."""
    pairs = min(most_pairs, max(1, n * (n - 1) // 2))
    return _BYTES_PER_SAMPLE * n * feature_map.n_output + _BYTES_PER_PAIR * pairs + _BLOCK_BYTES


def _exact(
    feature_map: FeatureMap,
    rows: Rows,
    i: NDArray[np.int64],
    j: NDArray[np.int64],
    gamma: float | None,
) -> tuple[Numbers, Numbers]:
    """Of each pair, the min-max kernel, and the RBF kernel where there is a gamma."""
    n = rows.shape[0]
    exact, rbf = np.empty(len(i)), np.empty(0 if gamma is None else len(i))
    for block in row_blocks(len(i), _ENTRIES_PER_BLOCK * n // max(n, int(rows.size))):
        x, y = rows[i[block]], rows[j[block]]
        exact[block] = feature_map.exact_pairs(x, y)
        if gamma is not None:
            rbf[block] = feature_map.rbf_pairs(x, y, gamma)
    return exact, rbf


def _compared(
    feature_map: FeatureMap, rows: Rows, by: Encoder, i: NDArray[np.int64], j: NDArray[np.int64]
) -> tuple[Numbers, NDArray[np.int64]]:
    """Of each pair, how often its codes agree, and of each row, how many of them are odd."""
    codes = feature_map.codes(rows, by)
    rates = np.empty(len(i))
    for block in row_blocks(len(i), _CODES_PER_BLOCK // feature_map.n_output):
        rates[block] = collision_rate(codes[i[block]], codes[j[block]])
    return rates, odd_codes(by, codes)


def _collisions(rate: Numbers, estimate: Estimate, exact: Numbers) -> Collisions:
    known = np.isfinite(estimate.value)
    if not known.any():
        return Collisions(rate=float(rate.mean()), mean=None, bias=None, rms_error=None)
    mean, bias, rms_error = _summary(estimate.value[known], exact[known])
    return Collisions(rate=float(rate.mean()), mean=mean, bias=bias, rms_error=rms_error)


def _rbf(estimate: Numbers, exact: Numbers) -> RbfEstimate:
    mean, bias, rms_error = _summary(estimate, exact)
    return RbfEstimate(exact=float(exact.mean()), mean=mean, bias=bias, rms_error=rms_error)


def _summary(estimate: Numbers, exact: Numbers) -> tuple[float, float, float]:
    error = estimate - exact
    return float(estimate.mean()), float(error.mean()), float(np.sqrt(np.mean(error**2)))
