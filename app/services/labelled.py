"""The rows of a request for recommendations with their labels, and their numbers in the dataset that they are of."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import PostedRows, Rows, dense
from app.core.datasets import Reference, sampled
from app.core.errors import InvalidInput
from app.core.recommendations import Label, LabelColumn, RecommendationOptions
from app.core.recommendations.held_out import Places
from app.core.recommendations.labels import FEWEST_LABELLED, Labels
from app.core.recommendations.trials import MOST_ROWS
from app.services.datasets import Datasets, GatedRows


class Task(NamedTuple):
    """The rows that maps are measured on, where they come from, and their labels."""

    rows: Rows
    """Up to `MOST_ROWS`, without a column of labels."""
    taken: Places
    """Their numbers among all rows of the dataset, or of the request."""
    n: int
    """How many these are."""
    every: PostedRows | Reference
    """All of these rows, from which a length scale is taken, without a column of labels."""
    dataset: str | None
    """The dataset that samplers may learn from; None where the rows came as they are, or are narrower than it."""
    labels: Labels | None
    y: tuple[Label, ...] | LabelColumn | None
    """The labels as a job needs them: of bare rows those that are taken, as no others are attached to it."""
    digests: dict[str, str]
    """The digest of a dataset of labels, by its name."""


def labelled(
    datasets: Datasets,
    options: RecommendationOptions,
    posted: Mapping[str, PostedRows | Reference],
    given: GatedRows,
) -> Task:
    """The rows of a request that are taken, with their labels.

    Raises:
        InvalidInput: there are too few labels, too many, or none that could be told.
        DatasetNotFound: labels are of a dataset that is not there.
    """
    source, rows, y = posted["vectors"], given.rows["vectors"], options.y
    own, dataset = None, None
    if isinstance(source, Reference):
        dataset = source.dataset
        own, digest, _ = datasets.read(Reference(source.dataset))
        if digest != given.digests[source.dataset]:
            raise InvalidInput(f"dataset {source.dataset!r} was replaced meanwhile; ask again", source.place)
        n = int(own.shape[0])
    else:
        n = int(source.shape[0])
    taken = _taken(source, n, options.seed)
    task = Task(rows, taken, n, source, dataset, None, None, {})
    if y is None:
        return task
    if isinstance(y, LabelColumn):
        values, digests = _column(datasets, y, own)
        if y.dataset is None and rows.shape[1] > y.column:
            others = np.arange(rows.shape[1]) != y.column
            task = task._replace(rows=rows[:, others], every=source if own is None else own[:, others], dataset=None)
    else:
        values, digests = np.asarray(y, _dtype(y)), {}
    if len(values) != n:
        raise InvalidInput(f"{len(values)} labels came for {n} rows", "/y")
    if len(taken) < FEWEST_LABELLED:
        raise InvalidInput(f"{len(taken)} labelled rows came; {FEWEST_LABELLED} are wanted at least", "/y")
    of_taken = values[taken]
    labels = Labels(of_taken, None if options.labels_are is None else options.labels_are == "numbers")
    kept = tuple(of_taken.tolist()) if own is None else y
    return task._replace(labels=labels, y=kept, digests=digests)


def _taken(source: PostedRows | Reference, n: int, seed: int) -> Places:
    """The numbers of the rows that come through the gate of this seed, of n."""
    if isinstance(source, Reference) and source.rows is not None:
        numbers = sampled(n, source.rows, source.seed)
        return numbers[sampled(len(numbers), MOST_ROWS, seed)] if len(numbers) > MOST_ROWS else numbers
    return sampled(n, MOST_ROWS, seed) if n > MOST_ROWS else np.arange(n)


def _column(datasets: Datasets, y: LabelColumn, own: Rows | None) -> tuple[NDArray[Any], dict[str, str]]:
    """The labels of a column, and the digest of their dataset, if it is not that of the rows."""
    digests: dict[str, str] = {}
    if y.dataset is not None:
        own, digests[y.dataset], _ = datasets.read(Reference(y.dataset))
    if own is None:
        raise InvalidInput("vectors came: y is a list, or a column of a dataset that it names", "/y/dataset")
    if y.column >= own.shape[1]:
        raise InvalidInput(f"column {y.column} is wanted; the dataset has {own.shape[1]}, from 0 on", "/y/column")
    return dense(own[:, [y.column]])[:, 0], digests


def _dtype(y: tuple[Label, ...]) -> type:
    """The type of the labels of a list; InvalidInput where strings and others are mixed."""
    strings = sum(isinstance(one, str) for one in y)
    if 0 < strings < len(y):
        raise InvalidInput(f"{strings} of {len(y)} labels are strings; all are, or none", "/y")
    return str if strings else bool if all(isinstance(one, bool) for one in y) else float
