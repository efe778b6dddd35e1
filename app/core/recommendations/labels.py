"""Labels of rows, and how well ridge regression on the features of a map tells them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.linalg import eigh
from numpy.typing import NDArray

from app.core.arrays import Matrix
from app.core.errors import InvalidInput
from app.core.recommendations.held_out import Fold, Places

FEWEST_LABELLED = 16
"""Labelled rows that there must be: fewer cannot be trained with, chosen by and reported on."""
MOST_CLASSES = 100
"""Classes that are told apart. Whole numbers with more different values are numbers."""
# Penalties, as parts of the mean eigenvalue of the centred Gram matrix of the rows trained with, times their number.
_PENALTIES = 10.0 ** np.arange(-7, 2.5, 0.5)
# Eigenvalues below this part of the largest are rounding.
_CUT_OFF = 1e-12


class Labels:
    """A label of each row, to be told from its features: a number, or one of several classes."""

    def __init__(self, given: Sequence[Any] | NDArray[Any], are_numbers: bool | None = None) -> None:
        """Read labels.

        Args:
            given: numbers, or anything else that can be sorted, a label for each row.
            are_numbers: whether they are to be told as numbers; None: unless they are strings or whole numbers of at
                most `MOST_CLASSES` different values.

        Raises:
            InvalidInput: all are alike, there are too many classes, or strings are to be numbers.
        """
        came = np.asarray(given)
        of_numbers = came.dtype.kind in "if"
        values, codes = np.unique(came, return_inverse=True)
        if are_numbers is None:
            are_numbers = of_numbers and (len(values) > MOST_CLASSES or bool((values % 1 != 0).any()))
        if are_numbers and not of_numbers:
            raise InvalidInput("some labels are no numbers; leave labels_are out, or say classes", "/labels_are")
        if len(values) < 2:
            raise InvalidInput(f"all labels are {values[0].item()!r}; there is nothing to tell", "/y")
        self.classes: Places | None = None
        """The number of the class of each row, (n,); None where labels are numbers."""
        if are_numbers:
            centred = came.astype(np.float64) - came.mean(dtype=np.float64)
            self.targets: Matrix = (centred / np.abs(centred).max())[:, None]
            """What is regressed on features: the number, or a column of 0 and 1 for each class."""
            return
        if len(values) > MOST_CLASSES:
            raise InvalidInput(f"there are {len(values)} classes; {MOST_CLASSES} are the most", "/y")
        self.classes, self.targets = codes, (codes[:, None] == np.arange(len(values))).astype(np.float64)

    def strata(self) -> Places:
        """Numbers of classes, or of tenths of the numbers, for parts of the rows that each get their share of all."""
        if self.classes is not None:
            return self.classes
        ranks = np.argsort(np.argsort(self.targets[:, 0], kind="stable"))
        strata: Places = ranks * 10 // len(ranks)
        return strata

    def score(self, gram: Matrix, fold: Fold) -> float:
        """How well ridge regression on features tells the labels of the measured rows, from those trained with.

        The share of classes that are right, the largest of the regressed columns being the class; or R², the part of
        the variance of the numbers that is told, 1 at the most, and negative where their mean would tell more. There
        is an intercept without a penalty. The penalty is that of the least squared error of leaving out one of the
        rows trained with, whose closed form takes one decomposition; measured rows have no say in it.

        Args:
            gram: inner products of the features of all rows, (n, n).
            fold: the rows that are measured on and those that are trained with.
        """
        trained, measured = fold.trained, fold.measured
        told = _ridge(gram[np.ix_(trained, trained)], gram[np.ix_(measured, trained)], self.targets[trained])
        if self.classes is not None:
            return float((told.argmax(axis=1) == self.classes[measured]).mean())
        truth = self.targets[measured]
        return 1 - float(np.square(told - truth).sum() / max(np.square(truth - truth.mean()).sum(), 1e-300))


def _ridge(gram: Matrix, block: Matrix, targets: Matrix) -> Matrix:
    """Ridge regression by inner products of features, with the penalty of the least error of leaving one out.

    With G the centred Gram matrix and λ the penalty, row i is missed by λa_i / (λ(G + λ)⁻¹_ii − 1/n) if it is left out,
    a = (G + λ)⁻¹y being the coefficients for centred targets y.

    Args:
        gram: of the rows trained with, (t, t).
        block: of the rows to tell and those, (m, t).
        targets: (t, c).

    Returns:
        What is told of the rows, (m, c).
    """
    n, means = len(gram), gram.mean(axis=0)
    centred = gram - means - means[:, None] + means.mean()
    eigenvalues, vectors = eigh(centred)
    eigenvalues = np.where(eigenvalues > _CUT_OFF * max(eigenvalues[-1], 0), eigenvalues, 0.0)
    mean = targets.mean(axis=0)
    rotated, squares = vectors.T @ (targets - mean), np.square(vectors)
    least, best = np.inf, np.zeros_like(targets)
    for penalty in _PENALTIES * max(eigenvalues.mean(), np.finfo(np.float64).tiny):
        inverse = 1 / (eigenvalues + penalty)
        coefficients = vectors @ (rotated * inverse[:, None])
        # Rows that the others say nothing of have a factor of 0 but for rounding.
        factors = np.maximum(penalty * (squares @ inverse) - 1 / n, 1e-12)
        error = float(np.square(penalty * coefficients / factors[:, None]).sum())
        if error < least:
            least, best = error, coefficients
    told: Matrix = (block - block.mean(axis=1, keepdims=True) - means + means.mean()) @ best + mean
    return told
