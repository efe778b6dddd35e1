"""Features, Gram blocks, codes and similarities of vectors.

Functions raise InvalidInput for rows that have no features, or cannot be hashed or compared; and TooLarge if a limit is
exceeded.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from itertools import chain
from math import inf, prod
from typing import Any

import numpy as np

from app.core.arrays import (
    IDS,
    SIGNATURE,
    Answer,
    Array,
    Ids,
    Matrix,
    OneHot,
    RowBlocks,
    Rows,
    own_bytes,
    row_blocks,
    shared_bytes,
)
from app.core.errors import InvalidInput, InvalidOption
from app.core.hashing.encodings import CodeOptions, Codes, Encoder, Encoding
from app.core.maps import FeatureMap
from app.core.maps.base import OPERATIONS_PER_NUMBER
from app.core.progress import Pause, no_pause
from app.services.limits import Limits

# Bytes of the estimates of a pair, and of numbers from which they are computed.
_BYTES_PER_PAIR = 128
# Bytes of features that a Gram block holds at a time.
_FEATURES_BYTES = 1 << 25
BLOCK_BYTES = 1 << 23
"""Most bytes of a result that are computed at a time; smaller results are computed as a whole."""


def make_result(
    feature_map: FeatureMap,
    x: Rows,
    row: tuple[tuple[int, ...], np.dtype[Any]],
    operations: int,
    per_number: int,
    limits: Limits,
    check: Callable[[], None],
    make: Callable[[Rows, Pause], Array],
    pause: Pause,
    largest: float = inf,
) -> Array | RowBlocks:
    """Return the result of `make` for the rows x, as a whole or in blocks, each of at most `max_result_bytes`.

    Args:
        feature_map: map that makes the result.
        x: rows of the request.
        row: shape and dtype of one row of the result.
        operations: multiplications that the result takes.
        per_number: multiplications that take as long as writing and sending one number of the result.
        limits: limits of the request.
        check: raises what `make` may raise. It is called before the first of several blocks is computed.
        make: computes the result of some rows; it must be the same as for these rows among all rows.
        pause: called between steps; of blocks, too, which are made later.
        largest: upper bound of the entries of the result.

    Raises:
        TooLarge: a single row of the result, or the total work, exceeds a limit.
    """
    shape, dtype = row
    n = x.shape[0]
    numbers = n * prod(shape) * (2 if dtype.kind == "c" else 1)
    limits.check_operations(operations + (per_number + OPERATIONS_PER_NUMBER) * numbers, n)
    row_bytes = prod(shape) * dtype.itemsize
    limits.check_result(row_bytes)
    most = min(BLOCK_BYTES, limits.max_result_bytes)
    if n * row_bytes <= most:
        return make(x, pause)
    check()
    blocks = [*row_blocks(n, most // row_bytes)]
    shared = {**shared_bytes(x), id(feature_map): feature_map.bytes}
    return RowBlocks((n, *shape), dtype, blocks, lambda block: make(x[block], pause), largest, own_bytes(x), shared)


def transform(feature_map: FeatureMap, x: Rows, limits: Limits, per_number: int, pause: Pause = no_pause) -> Answer:
    """Compute features of the vectors, in their order, and the map's signature if it has one.

    `per_number` is the number of multiplications that take as long as writing one number of the answer.

    Raises:
        InvalidInput: vectors have no features.
        TooLarge: a row of the result, or the work, exceeds a limit.
    """
    features = make_result(
        feature_map,
        x,
        ((feature_map.n_output,), feature_map.gram_dtype),
        feature_map.operations(x),
        per_number,
        limits,
        lambda: feature_map.check_rows(x, "/vectors", pause),
        feature_map.transform,
        pause,
        feature_map.largest_feature,
    )
    return answer(feature_map, features)


def answer(feature_map: FeatureMap, features: Array | RowBlocks) -> Answer:
    """Return an answer with features, and with the map's signature if it has one."""
    found: dict[str, Array | RowBlocks] = {"features": features}
    if feature_map.signature is not None:
        found[SIGNATURE] = feature_map.signature
    return found


def add_ids(answer: Answer, ids: Ids | None) -> Answer:
    """Return the answer with the ids of its rows, if they have ids."""
    return answer if ids is None else {**answer, IDS: ids}


def warnings_of(feature_map: FeatureMap, rows: Mapping[str, Rows]) -> tuple[str, ...]:
    """Return doubts about features of these rows, one sentence each; the keys are the request's names, such as `x`."""
    return tuple(chain.from_iterable(feature_map.warnings(given, member) for member, given in rows.items()))


def kernel(feature_map: FeatureMap, x: Rows, y: Rows, exact: bool, limits: Limits, pause: Pause = no_pause) -> Answer:
    """Compute the approximate Gram block of x against y, and the exact one if `exact`.

    Raises:
        InvalidInput: the kernel is not defined for some vectors.
        TooLarge: the result, or the work, exceeds a limit.
    """
    n, m = x.shape[0], y.shape[0]
    limits.check_result(n * m * feature_map.gram_dtype.itemsize * (2 if exact else 1))
    exactly = feature_map.kernel.exact_operations(x, y) if exact else 0
    limits.check_operations(feature_map.gram_operations(x, y) + exactly)
    if exact:
        limits.check_result(feature_map.kernel.exact_bytes(x, y))
    found: dict[str, Array] = {"approximate": _gram(feature_map, x, y, pause)}
    if exact:
        dtype = np.finfo(feature_map.gram_dtype).dtype  # the exact block of a complex Gram block is real
        found["exact"] = _in_range(feature_map.exact_gram(x, y, pause), dtype)
    return found


def _gram(feature_map: FeatureMap, x: Rows, y: Rows, pause: Pause) -> Array:
    """Compute the Gram block, by blocks of the longer side if features of all its rows would take much memory."""
    n, m = x.shape[0], y.shape[0]
    most = max(2 * min(n, m), _FEATURES_BYTES // feature_map.gram_row_bytes)
    if max(n, m) <= most:
        return feature_map.gram(x, y, pause)
    feature_map.check_rows(x, "/x", pause)
    feature_map.check_rows(y, "/y", pause)
    found = np.empty((n, m), feature_map.gram_dtype)
    for block in row_blocks(max(n, m), most):
        if n > m:
            found[block] = feature_map.gram(x[block], y, pause)
        else:
            found[:, block] = feature_map.gram(x, y[block], pause)
    return found


def _in_range(exact: Matrix, dtype: np.dtype[Any]) -> Array:
    """Cast exact kernel values to the dtype of the approximate ones; raise InvalidInput if one is too large for it."""
    with np.errstate(over="ignore"):  # the error below names the number
        found = exact.astype(dtype, copy=False)
    if not np.isfinite(found).all():
        raise InvalidInput(
            f"an exact kernel is {float(np.abs(exact).max()):.3g}, outside the range of {dtype}: take dtype float64"
        )
    return found


class OnZero(StrEnum):
    """Handling of rows that are all zero and so have no codes: refuse the request, or mark a row with codes of -1."""

    refuse = "refuse"
    mark = "mark"


def codes(
    hashing: FeatureMap, x: Rows, written: Encoder, limits: Limits, per_number: int, pause: Pause = no_pause
) -> Answer:
    """Compute codes of the vectors, in their order; `per_number` as in `vectors.transform`."""
    s = hashing.n_frequencies

    def check() -> None:
        if not written.marked:
            hashing.check_rows(x, "/vectors", pause)

    def make(some: Rows, pause: Pause) -> Codes:
        return hashing.codes(some, written, pause=pause)

    row = written.row(s, hashing.spec.input_dim)
    unwritten = hashing.operations_per_code * x.shape[0] * max(0, s - prod(row[0]))
    hashed = make_result(hashing, x, row, hashing.operations(x) + unwritten, per_number, limits, check, make, pause)
    if written.encoding is not Encoding.one_hot:
        return {"codes": hashed}
    return {"codes": OneHot(hashed, s << written.bits, ~hashing.find_rows_without_code(x))}


def comparison(hashing: FeatureMap, options: CodeOptions, gamma: float | None) -> Encoder | None:
    """Return the encoder of the codes to compare in a similarity; None if the client does not specify an encoding.

    Raises:
        InvalidOption: the options contradict each other, or do not suit this map.
    """
    if gamma is not None and (refusal := hashing.gamma_refusal()) is not None:
        raise InvalidOption(refusal, "gamma")
    if options.encoding is None and options != CodeOptions():
        raise InvalidOption("bits, bits_of and rows_per_band need an encoding, got none", "encoding")
    return None if options.encoding is None else hashing.encoder_of(options)


def similarity_of_vectors(
    hashing: FeatureMap, x: Rows, y: Rows, by: Encoder, gamma: float | None, limits: Limits, pause: Pause = no_pause
) -> Answer:
    """Estimate the kernel of row i of x with row i of y from codes, and compute it exactly.

    `by` says which codes to compare. If `gamma` is given, the RBF kernel is estimated too.
    """
    _check_pairs(x, y, limits)
    limits.check_result(hashing.kernel.exact_bytes(x, y))
    limits.check_operations(hashing.code_operations(x) + hashing.code_operations(y), x.shape[0])
    hashing.check_rows(x, "/x", pause)
    hashing.check_rows(y, "/y", pause)
    return {**hashing.similarity(x, y, by, gamma, pause)}


def similarity_of_codes(
    hashing: FeatureMap, x: Codes, y: Codes, by: Encoder, gamma: float | None, limits: Limits, pause: Pause = no_pause
) -> Answer:
    """Estimate the kernel of row i of x with row i of y from codes that are encoded by `by`."""
    _check_pairs(x, y, limits)
    return {**hashing.similarity_of_codes(x, y, by, gamma, pause)}


def _check_pairs(x: Rows | Codes, y: Rows | Codes, limits: Limits) -> None:
    limits.check_result(_BYTES_PER_PAIR * max(x.shape[0], y.shape[0]))
    if x.shape[0] != y.shape[0]:
        raise InvalidInput(f"x has {x.shape[0]} rows and y {y.shape[0]}; row i of x goes with row i of y", "/y")
