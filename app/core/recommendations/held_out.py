"""Which rows maps are chosen by, which ones the errors of the answer are of, and which rows samplers learn from."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.datasets import sampled
from app.core.errors import InvalidInput

Places = NDArray[np.intp]

MOST_LEARNED = 2000
"""Rows that samplers learn from in trials; of more, a sample is enough to rank them, and is quick."""
FEWEST_ROWS = 3
"""A dataset of fewer cannot be shared out."""
_FEWEST_MEASURED = 2
# Fewer rows than these are not shared out between choosing and reporting: each part would have too few to say anything.
_FEWEST_TO_SHARE, _FEWEST_TO_LEARN_AND_SHARE = 4, 12
# The answer's errors are of every third row.
_PART = 3
# Samplers learn much worse from few rows than from nearly all, which the map that is put learns from. Where they learn,
# errors are of as many rows as a tenth of the dataset, and a map is chosen by a twentieth of the others. Scores take
# more rows to tell: a sixth, and a tenth.
_PART_OF_LEARNED, _FOLDS_OF_LEARNED = 10, 20
_PART_OF_LABELLED, _FOLDS_OF_LEARNED_LABELLED = 6, 10
# With labels, a map is chosen by a fourth where none learns.
_FOLDS_OF_LABELLED = 4
# Of many rows by a third, and the next map by the next: errors differ more between seeds than between so many rows, and
# a map is measured in a fraction of the time.
_FOLDS, _FEWEST_IN_TURN = 3, 200


class Fold(NamedTuple):
    """Rows that a map is measured on, and others."""

    measured: Places
    """Places in the rows of the request, (m,), increasing."""
    trained: Places
    """Places of other rows, from whose labels a model may learn, (t,), increasing."""
    learned: Places
    """Numbers, in the dataset, of the rows that samplers learn from, (l,), increasing; none of them is `measured`."""


class Shares(NamedTuple):
    """The rows of a request, shared out."""

    reported: Fold
    """The rows that the errors of the answer are of."""
    choosing: tuple[Fold, ...]
    """What maps are chosen by: those of one seed by one fold. No row of them is `reported.measured`, if there are
    enough for both; nor is one learned from or trained with."""

    def fold(self, k: int) -> Fold:
        """The fold that the map of seed k is chosen by."""
        return self.choosing[k % len(self.choosing)]

    @property
    def rows(self) -> int:
        """How many rows are measured on."""
        return len(np.unique(np.concatenate([fold.measured for fold in (self.reported, *self.choosing)])))


def shared_out(
    taken: Places, n: int, seed: int, *, learns: bool = False, strata: NDArray[np.intp] | None = None
) -> Shares:
    """Share out the rows that a request has taken; alike for a seed.

    Args:
        taken: their numbers in a dataset of n rows, (t,), increasing; any numbers below n where there is none.
        n: how many rows there are.
        seed: of the shares.
        learns: whether samplers learn from the dataset. Then from all rows but those that are measured on, up to
            `MOST_LEARNED`; and where few are left, rows take turns.
        strata: classes of the rows taken, (t,), of which each part gets its share; None where there are none.

    Raises:
        InvalidInput: there are too few rows to learn from some and measure on others.
    """
    if learns and n < FEWEST_ROWS:
        wanted = f"a sampler that learns wants {FEWEST_ROWS}, as errors are measured on others"
        raise InvalidInput(f"the dataset has {n} rows; {wanted}", "/samplers")
    t = len(taken)
    of_order, of_learned = (int(word) for word in np.random.SeedSequence(seed).generate_state(2, np.uint64))
    order = np.lexsort((np.random.PCG64(of_order).random_raw(t), np.zeros(t) if strata is None else strata))

    def fold(measured: Places, others: Places) -> Fold:
        is_other = np.ones(n, np.bool_)
        is_other[taken[np.setdiff1d(order, others)]] = False
        learned = np.flatnonzero(is_other) if learns else np.zeros(0, np.intp)
        if len(learned) > MOST_LEARNED:
            learned = learned[sampled(len(learned), MOST_LEARNED, of_learned)]
        return Fold(np.sort(measured), np.sort(others), learned)

    if t < _FEWEST_TO_SHARE or (learns and n < _FEWEST_TO_LEARN_AND_SHARE):
        measured = order[: max(_FEWEST_MEASURED, n // FEWEST_ROWS)] if learns else order
        only = fold(measured, np.setdiff1d(order, measured))
        return Shares(only, (only,))
    part = _PART_OF_LEARNED if strata is None else _PART_OF_LABELLED
    count = max(_FEWEST_MEASURED, min(t // _PART, n // part) if learns else t // _PART)
    is_reported = np.zeros(t, np.bool_)
    is_reported[(2 * np.arange(count) + 1) * t // (2 * count)] = True
    reported, pool = order[is_reported], order[~is_reported]
    folds = _FOLDS_OF_LABELLED
    if strata is None:
        folds = _FOLDS if len(pool) >= _FOLDS * _FEWEST_IN_TURN else 1
    if learns:
        most = _FOLDS_OF_LEARNED if strata is None else _FOLDS_OF_LEARNED_LABELLED
        folds = max(folds, min(most, len(pool) * most // (n - count)))
    folds = max(1, min(folds, len(pool) // _FEWEST_MEASURED))
    parts = [pool[k::folds] for k in range(folds)]
    return Shares(fold(reported, pool), tuple(fold(one, np.setdiff1d(pool, one)) for one in parts))
