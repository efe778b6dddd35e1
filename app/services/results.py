"""Results that have a row for each row of the request: made whole, or in blocks where they are large."""

from collections.abc import Callable
from math import inf, prod
from typing import Any

import numpy as np

from app.core.answers import RowBlocks
from app.core.arrays import Array, Rows, row_blocks
from app.services.limits import Limits

BLOCK_BYTES = 1 << 23
"""The most that is made at a time of a result in blocks; smaller results are made whole."""


def made(
    x: Rows,
    row: tuple[tuple[int, ...], np.dtype[Any]],
    limits: Limits,
    check: Callable[[], None],
    make: Callable[[Rows], Array],
    largest: float = inf,
) -> Array | RowBlocks:
    """The result that `make` gives for the rows x, whole or in blocks, none of which passes `max_result_bytes`.

    Args:
        x: rows of the request.
        row: shape and dtype of one row of the result.
        limits: of the request.
        check: raises what `make` may raise. It is called before the first of several blocks is made.
        make: gives for some rows what it would give for them among all rows.
        largest: no entry of the result is larger.

    Raises:
        TooLarge: a single row of the result passes the limit.
    """
    shape, dtype = row
    row_bytes = prod(shape) * dtype.itemsize
    limits.check_result(row_bytes)
    n, most = x.shape[0], min(BLOCK_BYTES, limits.max_result_bytes)
    if n * row_bytes <= most:
        return make(x)
    check()
    return RowBlocks((n, *shape), dtype, [*row_blocks(n, most // row_bytes)], lambda block: make(x[block]), largest)
