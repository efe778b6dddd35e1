"""Non-negative solutions of quadratic programmes that stand as normal equations."""

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from app.core.arrays import Matrix
from app.core.progress import Progress, begin_anew, packed, unpacked
from app.core.samplers.base import PRODUCTS_PER_SECOND

Support = NDArray[np.bool_]

# Exchanges of the whole blocks that may fail to lessen the wrong signs before single ones, which always end, follow.
_PATIENCE = 3
# What counts as zero in a gradient, as part of the largest entry of the right side.
_TOLERANCE = 1e-11
# In practice some ten or twenty are made; without end, where rounding decides the signs.
_MOST_EXCHANGES = 500
_MOST_ONE_BY_ONE = 4096
_BISECTIONS = 60

Offer = Callable[[float], None]
"""Called before each call of the linear algebra with the multiplications it takes. It may raise to end the work."""


class Unsolved(Exception):
    """Rounding keeps the exchanges from ending: the matrix is singular."""


def offer(progress: Progress, make_state: Callable[[], bytes]) -> Offer:
    """Offers a state to the progress of some work: before a long call as such, else as a checkpoint."""

    def before_call(products: float) -> None:
        (progress.before_long_call if products > PRODUCTS_PER_SECOND else progress.checkpoint)(make_state)

    return before_call


def nonnegative(matrix: Matrix, right: Matrix, support: Support, before_call: Offer) -> Matrix:
    """A ≥ 0 of least ½aᵀMa − rᵀa, (n,), by block principal pivoting.

    Kim and Park (2011), Fast nonnegative matrix factorization: an active-set-like method, section 3; it guesses which
    entries are above 0, solves for these, and exchanges all whose sign, or whose gradient's, is wrong. At the end the
    conditions of Karush, Kuhn and Tucker hold, which for a convex programme are enough.

    M, (n, n), is symmetric and positive definite; Unsolved is raised where it is singular to rounding. `support`, (n,),
    is a first guess of the entries above 0; `before_call` is told of every system that is solved. Where many solutions
    are nearly as good, as on rows that repeat, exchanges may never end: entries then come one by one.
    """
    inside, fewest, patience = support.copy(), len(right) + 1, _PATIENCE
    tolerance = _TOLERANCE * float(np.abs(right).max(initial=0.0))
    for _ in range(_MOST_EXCHANGES):
        solution = np.zeros(len(right))
        chosen = np.flatnonzero(inside)
        if chosen.size:
            before_call(chosen.size**3 / 3)
            try:
                solution[chosen] = cho_solve(cho_factor(matrix[np.ix_(chosen, chosen)]), right[chosen])
            except LinAlgError:
                raise Unsolved from None
        gradient = matrix @ solution - right
        wrong = np.where(inside, solution < 0, gradient < -tolerance)
        count = int(wrong.sum())
        if count == 0:
            return solution
        if count < fewest:
            fewest, patience = count, _PATIENCE
        elif patience:
            patience -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        inside ^= wrong
    return _one_by_one(matrix, right, before_call)


def _one_by_one(matrix: Matrix, right: Matrix, before_call: Offer) -> Matrix:
    """The same by the active sets of Lawson and Hanson on a root of M, which takes longer and always ends."""
    n = len(right)
    if n > _MOST_ONE_BY_ONE:
        raise Unsolved
    before_call(float(n) ** 3)
    try:
        root = cholesky(matrix)
    except LinAlgError:
        raise Unsolved from None
    solution: Matrix = scipy.optimize.nnls(root, solve_triangular(root, right, trans="T"), maxiter=30 * n)[0]
    return solution


def sparse_support(matrix: Matrix, right: Matrix, count: int, progress: Progress) -> NDArray[np.intp]:
    """Entries above 0 of the solution with a penalty λΣa, the least λ that leaves at most `count` of them, (k,).

    On a ≥ 0 the penalty takes λ from every entry of r. λ is bisected, each solution beginning at the one before.
    What `progress` restores is a state of this very search.
    """
    saved = unpacked(progress.restored())
    if saved:
        least, most = saved["penalties"].tolist()
        support, kept, done = saved["support"], saved["kept"], int(saved["done"])
    else:
        support = nonnegative(matrix, right, np.zeros(len(right), np.bool_), offer(progress, begin_anew)) > 0
        least, most = 0.0, float(right.max(initial=0.0))
        if np.count_nonzero(support) <= count:
            return np.flatnonzero(support)
        kept, done = np.empty(0, np.intp), 0
    while done < _BISECTIONS and len(kept) < count:
        state = partial(packed, penalties=np.array([least, most]), support=support, kept=kept, done=np.array(done))
        progress.checkpoint(state)
        penalty = (least + most) / 2
        support = nonnegative(matrix, right - penalty, support, offer(progress, state)) > 0
        above = np.flatnonzero(support)
        if len(above) > count:
            least = penalty
        else:
            most, kept = penalty, above
        done += 1
    if not len(kept):
        # No penalty tells them apart: one is as good as the other.
        kept = np.flatnonzero(nonnegative(matrix, right - least, support, offer(progress, begin_anew)))[:count]
    return kept


def support_state(kept: NDArray[np.intp]) -> bytes:
    """The state from which `sparse_support` gives these entries at once."""
    return packed(penalties=np.zeros(2), support=np.zeros(0, np.bool_), kept=kept, done=np.array(_BISECTIONS))
