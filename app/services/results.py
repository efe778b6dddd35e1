"""Results that have a row for each row of the request: made whole, or in blocks where they are large."""

from collections.abc import Callable
from math import inf, prod
from typing import Any

import numpy as np

from app.core.answers import RowBlocks
from app.core.arrays import Array, Rows, row_blocks
from app.services.limits import Limits

# Making a number of a result, such as a cosine, takes as long as so many multiplications, beside those it is made of.
_OPERATIONS_PER_NUMBER = 160
BLOCK_BYTES = 1 << 23
"""The most that is made at a time of a result in blocks; smaller results are made whole."""


def made(
    x: Rows,
    row: tuple[tuple[int, ...], np.dtype[Any]],
    operations: int,
    per_number: int,
    limits: Limits,
    check: Callable[[], None],
    make: Callable[[Rows], Array],
    largest: float = inf,
) -> Array | RowBlocks:
    """The result that `make` gives for the rows x, whole or in blocks, none of which passes `max_result_bytes`.

    Args:
        x: rows of the request.
        row: shape and dtype of one row of the result.
        operations: multiplications that the result takes.
        per_number: those that writing and sending a number of it takes.
        limits: of the request.
        check: raises what `make` may raise. It is called before the first of several blocks is made.
        make: gives for some rows what it would give for them among all rows.
        largest: no entry of the result is larger.

    Raises:
        TooLarge: a single row of the result, or all work with it, passes a limit.
    """
    shape, dtype = row
    n = x.shape[0]
    numbers = n * prod(shape) * (2 if dtype.kind == "c" else 1)
    limits.check_operations(operations + (per_number + _OPERATIONS_PER_NUMBER) * numbers, n)
    row_bytes = prod(shape) * dtype.itemsize
    limits.check_result(row_bytes)
    most = min(BLOCK_BYTES, limits.max_result_bytes)
    if n * row_bytes <= most:
        return make(x)
    check()
    return RowBlocks((n, *shape), dtype, [*row_blocks(n, most // row_bytes)], lambda block: make(x[block]), largest)
