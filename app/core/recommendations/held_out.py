"""Which rows of a dataset errors are measured on where samplers learn from the others."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.datasets import sampled
from app.core.errors import InvalidInput

MOST_LEARNED = 2000
"""Rows that samplers learn from in trials; of more, a sample is enough to rank them, and is quick."""
# Errors are measured on at most a third of the rows, so that most are there to learn from.
_SHARE, _FEWEST_MEASURED = 3, 2
FEWEST_ROWS = _FEWEST_MEASURED + 1
"""A dataset of fewer cannot be shared out."""


class HeldOut(NamedTuple):
    """A dataset shared out: no row is in both parts."""

    measured: NDArray[np.intp]
    """Places, in a request's rows, of those that errors are measured on, (m,), increasing."""
    learned: NDArray[np.intp]
    """Numbers, in the dataset, of the rows to learn from, (l,), increasing."""


def held_out(n: int, taken: NDArray[np.intp], seed: int) -> HeldOut:
    """Share out the n rows of a dataset, of which a request has taken those with these numbers; alike for a seed.

    Errors are measured on taken rows, on no more than a third of all. All others, up to `MOST_LEARNED`, are learned
    from, taken or not.

    Raises:
        InvalidInput: there are too few rows for both.
    """
    if n < FEWEST_ROWS:
        raise InvalidInput(
            f"the dataset has {n} rows; a sampler that learns wants {FEWEST_ROWS}, as errors are measured on others",
            "/samplers",
        )
    of_measured, of_learned = (int(word) for word in np.random.SeedSequence(seed).generate_state(2, np.uint64))
    most = max(_FEWEST_MEASURED, n // _SHARE)
    measured = np.arange(len(taken)) if len(taken) <= most else sampled(len(taken), most, of_measured)
    is_other = np.ones(n, np.bool_)
    is_other[taken[measured]] = False
    others = np.flatnonzero(is_other)
    learned = others if len(others) <= MOST_LEARNED else others[sampled(len(others), MOST_LEARNED, of_learned)]
    return HeldOut(measured, learned)
