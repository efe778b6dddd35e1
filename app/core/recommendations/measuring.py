"""Measurements of one candidate: errors on choosing rows and on reported rows, scores, memory and time."""

import timeit
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.linalg import eigh
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Array, Matrix, Rows, dense, divide_columns, in_dtype, in_own_columns, row_blocks
from app.core.building import Building
from app.core.datasets import sample_rows
from app.core.diagnostics.error_matrix import RowVariation, row_variation
from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.maps import FeatureMap, Gives, make_map
from app.core.progress import Pause, Progress, pause_of
from app.core.recommendations.candidates import Wanted
from app.core.spec import MapSpec

Places = NDArray[np.intp]

MOST_LEARNED = 2000
"""Most rows that samplers learn from in trials: a sample is enough to rank them, and is quick."""
FEWEST_ROWS = 3
"""Fewest rows of a dataset that can be split into rows to learn from and rows to measure on."""
_FEWEST_MEASURED = 2
# Fewest rows, without and with samplers that learn, to split into choosing and reported rows: with fewer, each part
# would be too small to say anything.
_FEWEST_TO_SHARE, _FEWEST_TO_LEARN_AND_SHARE = 4, 12
# One row in three is a reported row.
_PART = 3
# Samplers learn much worse from few rows than from nearly all, which the map that is PUT learns from. With samplers
# that learn, as many rows are reported as a tenth of the dataset, and a map is chosen by a twentieth of the others.
# Scores need more rows: a sixth, and a tenth.
_PART_OF_LEARNED, _FOLDS_OF_LEARNED = 10, 20
_PART_OF_LABELLED, _FOLDS_OF_LEARNED_LABELLED = 6, 10
# With labels, and without samplers that learn, a map is chosen by a fourth of the choosing rows.
_FOLDS_OF_LABELLED = 4
# If there are many rows, a map is chosen by a third of them, and the next map by the next third: errors differ more
# between seeds than between that many rows, and a map is measured in a fraction of the time.
_FOLDS, _FEWEST_IN_TURN = 3, 200


class Fold(NamedTuple):
    """Rows that a map is measured on, and rows to learn from."""

    measured: Places
    """Indices of the rows measured on, among the rows of the request, (m,), increasing."""
    trained: Places
    """Indices of other rows, from whose labels a model may learn, (t,), increasing."""
    learned: Places
    """Row numbers in the dataset of the rows that samplers learn from, (l,), increasing; none of them is `measured`."""


class Shares(NamedTuple):
    """Split of the rows of a request."""

    reported: Fold
    """Fold whose measured rows are the reported rows: the errors of the answer are measured on them."""
    choosing: tuple[Fold, ...]
    """Folds that maps are chosen by, one for the maps of each seed. If there are enough rows, no reported row is in
    these folds, neither to measure on nor to learn from or train with.
    """

    def fold(self, k: int) -> Fold:
        """Return the fold that the map of seed k is chosen by."""
        return self.choosing[k % len(self.choosing)]

    @property
    def rows(self) -> int:
        """Number of rows that are measured on, in all folds."""
        return len(np.unique(np.concatenate([fold.measured for fold in (self.reported, *self.choosing)])))


def shared_out(taken: Places, n: int, seed: int, *, learns: bool = False, strata: Places | None = None) -> Shares:
    """Split the rows that a request has taken; the same way for the same seed.

    Args:
        taken: their numbers in a dataset of n rows, (t,), increasing; any numbers below n if there is no dataset.
        n: number of rows of the dataset.
        seed: seed of the split.
        learns: whether samplers learn from the dataset. They then learn from all rows that are not measured on, up to
            `MOST_LEARNED`; if few are left, rows take turns, as in cross-validation.
        strata: classes of the rows taken, (t,), of which each part gets its share; None if there are none.

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
        learned = learned[sample_rows(len(learned), MOST_LEARNED, of_learned)]
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


FEWEST_LABELLED = 16
"""Fewest labelled rows: fewer are not enough to train with, choose by and report on."""
MOST_CLASSES = 100
"""Largest number of classes. Whole numbers with more different values are treated as numbers."""
# Penalties of ridge regression, as parts of the mean eigenvalue of the centred Gram matrix of the rows trained with.
_PENALTIES = 10.0 ** np.arange(-7, 2.5, 0.5)
# Columns of features that are multiplied at once.
_COLUMNS_AT_ONCE = 256
# Eigenvalues below this part of the largest, or of the largest entry of the Gram matrix, are rounding errors.
_CUT_OFF = 1e-12


class Labels:
    """Labels of rows, to be predicted from features: numbers, or several classes."""

    def __init__(self, given: Sequence[Any] | NDArray[Any], are_numbers: bool | None = None) -> None:
        """Read labels.

        Args:
            given: numbers, or anything else that can be sorted; one label for each row.
            are_numbers: whether to treat labels as numbers; if None, numeric labels are, unless all are whole with at
                most `MOST_CLASSES` different values.

        Raises:
            InvalidInput: all labels are equal, there are too many classes, or labels that are not numbers should be
                numbers.
        """
        came = np.asarray(given)
        of_numbers = came.dtype.kind in "if"
        values, codes = np.unique(came, return_inverse=True)
        if are_numbers is None:
            are_numbers = of_numbers and (len(values) > MOST_CLASSES or bool((values % 1 != 0).any()))
        if are_numbers and not of_numbers:
            raise InvalidInput("some labels are no numbers; leave labels_are out, or say classes", "/labels_are")
        if len(values) < 2:
            raise InvalidInput(f"all labels are {values.tolist()[0]!r:.80}; there is nothing to tell", "/y")
        self.classes: Places | None = None
        """Class number of each row, (n,); None if labels are numbers."""
        if are_numbers:
            numbers = came.astype(np.float64)
            numbers = np.ldexp(numbers, -np.frexp(np.abs(numbers).max())[1])  # exact, for numbers of any size
            centred = numbers - numbers.mean()
            self.targets: Matrix = (centred / np.abs(centred).max())[:, None]
            """Targets of the regression: the number, centred and scaled, or a column of 0 and 1 for each class."""
            return
        if len(values) > MOST_CLASSES:
            raise InvalidInput(f"there are {len(values)} classes; {MOST_CLASSES} are the most", "/y")
        self.classes, self.targets = codes, (codes[:, None] == np.arange(len(values))).astype(np.float64)

    def strata(self) -> Places:
        """Return the class or the decile of each row, for a split in which each part gets its share of all."""
        if self.classes is not None:
            return self.classes
        ranks = np.argsort(np.argsort(self.targets[:, 0], kind="stable"))
        strata: Places = ranks * 10 // len(ranks)
        return strata

    def score(self, gram: Matrix, fold: Fold) -> float:
        """Return how well ridge regression on features predicts the labels of the measured rows.

        For classes it is the share of correct predictions; the largest regressed column is the predicted class. For
        numbers it is R², 1 minus the mean squared error as a part of the variance of all labels: at most 1, and
        negative if the mean of the numbers predicts better. There is an intercept without a penalty. The penalty is the
        one with the smallest squared leave-one-out error on the rows trained with, whose closed form takes one
        decomposition; the measured rows do not influence it.

        Args:
            gram: inner products of the features of all rows, (n, n); the same vector may have been taken from each.
            fold: the rows to measure on and to train with.
        """
        trained, measured = fold.trained, fold.measured
        told = _ridge(gram[np.ix_(trained, trained)], gram[np.ix_(measured, trained)], self.targets[trained])
        if self.classes is not None:
            return float((told.argmax(axis=1) == self.classes[measured]).mean())
        return 1 - float(np.square(told - self.targets[measured]).mean() / self.targets.var())


def linear_score(rows: Rows, labels: Labels, fold: Fold) -> float:
    """Return the score of ridge regression on the rows themselves, (n, d), with columns scaled to equal deviations."""
    # Of millions of columns, few rows use few.
    scaled: Any = in_own_columns(rows)[1] if isinstance(rows, sparse.csr_array) else rows.astype(np.float64)
    largest = dense(abs(scaled).max(axis=0)).ravel()
    divide_columns(scaled, np.where(largest > 0, largest, 1.0))  # squares of large or small entries leave float64
    sizes = np.sqrt(_column_means(np.square(scaled), fold.trained))
    for _ in range(2):  # the second mean is the rounding error of the first
        means = _column_means(scaled, fold.trained)
        if isinstance(scaled, np.ndarray):
            scaled -= means
        else:  # a column with an entry in each row; others have deviations of the size of their means
            n_entries = np.bincount(scaled.indices, minlength=scaled.shape[1])
            scaled.data -= np.where(n_entries == scaled.shape[0], means, 0.0)[scaled.indices]
    squares, means = _column_means(np.square(scaled), fold.trained), _column_means(scaled, fold.trained)
    deviations = np.sqrt(np.maximum(squares - np.square(means), 0))
    deviations[deviations <= _CUT_OFF * sizes] = np.inf  # a constant column says nothing
    divide_columns(scaled, deviations)
    return labels.score(dense(scaled @ scaled.T), fold)


def _column_means(rows: Any, some: Places) -> Matrix:
    return np.asarray(rows[some].mean(axis=0)).ravel()


def _ridge(gram: Matrix, block: Matrix, targets: Matrix) -> Matrix:
    """Return predictions of ridge regression from inner products of features, with the best leave-one-out penalty.

    With G the centred Gram matrix and λ the penalty, the error of row i when it is left out is λa_i / (λ(G + λ)⁻¹_ii −
    1/n), where a = (G + λ)⁻¹y are the coefficients for centred targets y.

    Args:
        gram: of the rows trained with, (t, t).
        block: inner products of the rows to predict with the rows trained with, (m, t).
        targets: (t, c).

    Returns:
        Predictions, (m, c).
    """
    n, means = len(gram), gram.mean(axis=0)
    eigenvalues, vectors = eigh(gram - means - means[:, None] + means.mean())
    eigenvalues = np.where(eigenvalues > _CUT_OFF * max(eigenvalues[-1], np.abs(gram).max()), eigenvalues, 0.0)
    mean = targets.mean(axis=0)
    if not eigenvalues.any():  # the rows trained with are all alike
        return np.repeat(mean[None], len(block), axis=0)
    rotated, squares = vectors.T @ (targets - mean), np.square(vectors)
    least, best = np.inf, np.zeros_like(targets)
    for penalty in _PENALTIES * eigenvalues.mean():
        inverse = 1 / (eigenvalues + penalty)
        coefficients = vectors @ (rotated * inverse[:, None])
        # The factor is 0, up to rounding, for a row about which the other rows say nothing.
        factors = np.maximum(penalty * (squares @ inverse) - 1 / n, 1e-12)
        error = float(np.square(penalty * coefficients / factors[:, None]).sum())
        if error < least:
            least, best = error, coefficients
    return np.asarray((block - block.mean(axis=1, keepdims=True) - means + means.mean()) @ best + mean, np.float64)


class Measured(TypedDict, total=False):
    """Measurements of one map."""

    choosing: float
    """Criterion that candidates are chosen by, on the choosing rows: the error, or 1 minus the score."""
    error: float
    """Relative Frobenius error on the reported rows."""
    is_random: bool
    """Whether maps of other seeds differ."""
    variation: Sequence[float]
    """Fields of a `RowVariation`: contribution of the reported rows to the uncertainty of the error."""
    score: float
    """Score on the reported rows of a model trained with the choosing rows."""
    n_output: int
    bytes: int
    seconds: float
    """Seconds that a transform of 1,000 rows takes."""


class Measuring:
    """Builder of maps that measures them on the rows of a request."""

    def __init__(
        self, rows: Rows, shares: Shares, labels: Labels | None, wanted: Wanted, building: Building, timed_calls: int
    ) -> None:
        self._rows, self._shares, self._labels = rows, shares, labels
        self._dataset, self._building, self._timed_calls = wanted.dataset, building, timed_calls
        self.progress = building.progress
        """Progress of all measurements."""
        self._exact: tuple[Kernel, Matrix] | None = None

    def choosing(self, spec: MapSpec, k: int, progress: Progress) -> Measured | str:
        """Return measurements of a map, the k-th of its spec, or why there are none; memory and time if k is 0."""
        fold = self._shares.fold(k)

        def figures(its_map: FeatureMap, exact: Matrix, pause: Pause) -> Measured:
            found = self._measure_report(its_map, exact, pause)
            if self._labels is None:
                found["choosing"], _ = self._error(its_map, exact, fold.measured, pause)
            else:
                found["choosing"] = 1 - self._score(its_map, fold, self._labels, pause)
            if k == 0:
                found["n_output"] = its_map.n_output
                frozen = its_map.arrays.keys() - its_map.computed.keys()
                found["bytes"] = sum(its_map.arrays[name].nbytes for name in frozen)
                found["seconds"] = _seconds(its_map, self._rows, self._timed_calls, pause) * 1000 / self._rows.shape[0]
            return found

        return self._of_map(spec, fold, progress, figures)

    def report(self, spec: MapSpec, progress: Progress) -> Measured | str:
        """Return the measurements of a map on the reported rows alone; the map may learn from all other rows."""
        return self._of_map(spec, self._shares.reported, progress, self._measure_report)

    def _of_map(
        self, spec: MapSpec, fold: Fold, progress: Progress, figures: Callable[[FeatureMap, Matrix, Pause], Measured]
    ) -> Measured | str:
        """Return measurements of the map of a spec, which learns from the rows of a fold; or why it is refused."""
        building = self._building

        def rows_of(dataset: str, pointer: str) -> Rows:
            rows = building.rows(dataset, pointer)
            return rows[fold.learned] if dataset == self._dataset else rows

        # A map is built again after an interruption; the last state that its sampler has stored is kept.
        pause = pause_of(progress)

        if self._exact is None or self._exact[0] != spec.kernel:
            rows = spec.kernel.prepare(in_dtype(self._rows, np.dtype(np.float64)), "/vectors")
            self._exact = spec.kernel, spec.kernel.exact_in_parts(rows, rows, building.threads, pause)
        exact = self._exact[1]
        try:
            its_map = make_map(spec, building._replace(progress=progress, rows=rows_of))
            if self._labels is not None and its_map.signature is not None:
                return "some weights are negative: inner products of such features, as a linear model has, mean nothing"
            return figures(its_map, exact, pause)
        except InvalidInput as refused:
            return refused.detail

    def _measure_report(self, its_map: FeatureMap, exact: Matrix, pause: Pause) -> Measured:
        """Return the error on the reported rows and, if there are labels, the score."""
        reported = self._shares.reported
        error, variation = self._error(its_map, exact, reported.measured, pause)
        found = Measured(error=error, is_random=its_map.is_random, variation=[*variation])
        if self._labels is not None:
            found["score"] = self._score(its_map, reported, self._labels, pause)
        return found

    def _error(self, its_map: FeatureMap, exact: Matrix, places: Places, pause: Pause) -> tuple[float, RowVariation]:
        """Return the relative Frobenius error of the Gram matrix of all measured rows, estimated at `places`.

        Entries off the diagonal are weighted to count as in the matrix of all these rows. In the matrix of few rows,
        the diagonal would count for too much, as some samplers have no error there, and others a large one.
        """
        rows, exact = self._rows[places], exact[np.ix_(places, places)]
        off = (self._shares.rows - 1) / (len(places) - 1)

        def squares(matrix: Array) -> Matrix:
            """Return the weighted sum of squares of each row."""
            diagonal = np.square(np.abs(np.diagonal(matrix)))
            sums: Matrix = diagonal + off * (np.square(np.abs(matrix)).sum(axis=1) - diagonal)
            return sums

        errors, kernel = squares(its_map.gram(rows, rows, pause) - exact), squares(exact)
        # A kernel that takes both signs may be 0 on these rows; the error is then absolute.
        return float(np.sqrt(errors.sum() / (kernel.sum() or 1.0))), row_variation(errors, kernel)

    def _score(self, its_map: FeatureMap, fold: Fold, labels: Labels, pause: Pause) -> float:
        """Return the score of the labels on the rows of a fold."""
        every = np.concatenate([fold.trained, fold.measured])
        gram = np.zeros((self._rows.shape[0],) * 2)
        gram[np.ix_(every, fold.trained)] = _centred_products(its_map, self._rows[every], len(fold.trained), pause)
        pause()
        return labels.score(gram, fold)


def _centred_products(its_map: FeatureMap, rows: Rows, t: int, pause: Pause) -> Matrix:
    """Return inner products of the features of rows (n, d) and of the first t, less the mean of these, (n, t).

    They are sums in float64. In `gram`, which has the precision of the map, rounding errors of what all rows share may
    be larger than what tells them apart. Collision rates have no such errors.
    """
    if Gives.features not in its_map.gives:
        return its_map.gram(rows, rows[:t], pause)
    features = its_map.transform(rows, pause)
    products = np.zeros((len(features), t))
    for columns in row_blocks(features.shape[1], _COLUMNS_AT_ONCE):
        pause()
        some = features[:, columns].astype(np.float64)
        is_constant = (some[:t] == some[0]).all(axis=0)
        some -= np.where(is_constant, some[0], some[:t].mean(axis=0))  # exactly 0 then
        products += some @ some[:t].T
    return products


def _seconds(its_map: FeatureMap, rows: Rows, calls: int, pause: Pause) -> float:
    """Return the seconds that the map takes for the rows: the shortest of several calls."""
    return min(timeit.repeat(lambda: its_map.apply(rows, pause), number=1, repeat=calls))
