"""What is measured of one candidate: errors on rows it is chosen by and on others, scores, memory and time."""

import timeit
from collections.abc import Callable
from typing import TypedDict

import numpy as np

from app.core.arrays import Matrix, Rows, in_dtype
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.maps import FeatureMap, made
from app.core.progress import Pause, Progress, begin_anew
from app.core.recommendations.candidates import Wanted
from app.core.recommendations.held_out import Fold, Places, Shares
from app.core.recommendations.labels import Labels
from app.core.spec import MapSpec


class Measured(TypedDict, total=False):
    """Figures of one map."""

    choosing: float
    """What candidates are chosen by: the error, or what the score misses of 1, on the choosing rows."""
    error: float
    """Relative Frobenius error on the reported rows."""
    score: float
    """Of a model trained with the choosing rows, on the reported ones."""
    n_output: int
    bytes: int
    seconds: float
    """Of a transform of 1,000 rows."""


class Measuring:
    """Builds maps and measures them on the rows of a request."""

    def __init__(
        self, rows: Rows, shares: Shares, labels: Labels | None, wanted: Wanted, building: Building, timed_calls: int
    ) -> None:
        self._rows, self._shares, self._labels = rows, shares, labels
        self._dataset, self._building, self._timed_calls = wanted.dataset, building, timed_calls
        self.progress = building.progress
        """That of all that is measured."""
        self._exact: tuple[Kernel, Matrix] | None = None

    def choosing(self, spec: MapSpec, k: int, progress: Progress) -> Measured | str:
        """The figures of a map, the k-th of its kind, or why there is none; memory and time for the first one only."""
        fold = self._shares.fold(k)

        def figures(its_map: FeatureMap, exact: Matrix, pause: Pause) -> Measured:
            found = self._on_reported(its_map, exact, pause)
            if self._labels is None:
                found["choosing"] = self._error(its_map, exact, fold.measured, pause)
            else:
                found["choosing"] = 1 - self._score(its_map, fold, self._labels, pause)
            if k == 0:
                found["n_output"] = its_map.n_output
                frozen = its_map.arrays.keys() - its_map.computed.keys()
                found["bytes"] = sum(its_map.arrays[name].nbytes for name in frozen)
                found["seconds"] = _seconds(its_map, self._rows, self._timed_calls, pause) * 1000 / self._rows.shape[0]
            return found

        return self._of_map(spec, fold, progress, figures)

    def reported(self, spec: MapSpec, progress: Progress) -> Measured | str:
        """The figures of a map on the reported rows alone; it may learn from all others."""
        return self._of_map(spec, self._shares.reported, progress, self._on_reported)

    def _of_map(
        self, spec: MapSpec, fold: Fold, progress: Progress, figures: Callable[[FeatureMap, Matrix, Pause], Measured]
    ) -> Measured | str:
        """The figures of the map of a spec, which learns from rows of a fold; or the refusal of it."""
        building = self._building

        def rows_of(dataset: str, pointer: str) -> Rows:
            rows = building.rows(dataset, pointer)
            return rows[fold.learned] if dataset == self._dataset else rows

        def pause() -> None:
            # A map is built again after an interruption; what its sampler has learned of it until the last one is kept.
            progress.checkpoint(lambda: progress.restored() or begin_anew())

        if self._exact is None or self._exact[0] != spec.kernel:
            rows = spec.kernel.prepared(in_dtype(self._rows, np.dtype(np.float64)), "/vectors")
            self._exact = spec.kernel, spec.kernel.exact_in_parts(rows, rows, building.threads, pause)
        exact = self._exact[1]
        try:
            its_map = made(spec, building._replace(progress=progress, rows=rows_of))
            if self._labels is not None and its_map.signature is not None:
                return "some weights are negative: inner products of such features, as a linear model has, mean nothing"
            return figures(its_map, exact, pause)
        except InvalidInput as refused:
            return refused.detail

    def _on_reported(self, its_map: FeatureMap, exact: Matrix, pause: Pause) -> Measured:
        """The error on the reported rows and, where there are labels, the score."""
        reported = self._shares.reported
        found = Measured(error=self._error(its_map, exact, reported.measured, pause))
        if self._labels is not None:
            found["score"] = self._score(its_map, reported, self._labels, pause)
        return found

    def _error(self, its_map: FeatureMap, exact: Matrix, places: Places, pause: Pause) -> float:
        """Relative Frobenius error of the Gram matrix of all rows that are measured on, estimated by some of them.

        Entries off the diagonal count for as many as there would be: of few rows the diagonal would count for too much,
        where some samplers have no error, and others a large one.
        """
        rows, exact = self._rows[places], exact[np.ix_(places, places)]
        off = (self._shares.rows - 1) / (len(places) - 1)

        def squares(matrix: Matrix) -> float:
            diagonal = np.square(np.diagonal(matrix)).sum()
            return float(diagonal + off * (np.square(matrix).sum() - diagonal))

        # Kernels of both signs may be 0 on some rows; then nothing is relative.
        return float(np.sqrt(squares(its_map.gram(rows, rows, pause) - exact) / (squares(exact) or 1.0)))

    def _score(self, its_map: FeatureMap, fold: Fold, labels: Labels, pause: Pause) -> float:
        """The score of the labels on the rows of a fold."""
        every = np.concatenate([fold.trained, fold.measured])
        gram = np.zeros((self._rows.shape[0],) * 2)
        gram[np.ix_(every, fold.trained)] = its_map.gram(self._rows[every], self._rows[fold.trained], pause)
        pause()
        return labels.score(gram, fold)


def _seconds(its_map: FeatureMap, rows: Rows, calls: int, pause: Pause) -> float:
    """The time that the map takes for the rows, the least of some calls."""
    return min(timeit.repeat(lambda: its_map.apply(rows, pause), number=1, repeat=calls))
