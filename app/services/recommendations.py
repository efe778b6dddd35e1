"""Recommendations of maps for rows and their labels, checked and ready to run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from app.core.arrays import (
    AFTER_INPUT,
    CheckBytes,
    PostedRows,
    Rows,
    check_range,
    complete,
    floats,
    made_dense,
    of_columns,
    split_off,
    vectors,
)
from app.core.building import Building
from app.core.datasets import Reference, sample_rows
from app.core.diagnostics import Finding
from app.core.drawing import shorten
from app.core.errors import InvalidInput
from app.core.input import Input, fit_input
from app.core.kernels import Kernel
from app.core.kernels.base import ShiftInvariantKernel
from app.core.kernels.rounding import coarseness_warnings
from app.core.length_scales import length_scale
from app.core.progress import Progress
from app.core.recommendations.candidates import (
    InputMember,
    KernelMember,
    KernelsMember,
    Label,
    LabelColumn,
    Objective,
    RecommendationOptions,
    Wanted,
    at_multiples,
    fitting,
    learned_from,
    recommended_bytes,
    widest_map_bytes,
)
from app.core.recommendations.drawing import drawing
from app.core.recommendations.measuring import FEWEST_LABELLED, FEWEST_ROWS, Labels, Places, Shares, shared_out
from app.core.recommendations.trials import MOST_ROWS, Ranking, check_shape, recommend
from app.services.asked import (
    Parse,
    ScaleOfRows,
    ScalePerColumn,
    after_input,
    fit_of,
    rows_of,
    scale_of,
    without_scale,
)
from app.services.datasets import Datasets, Gate, GatedRows, at_their_datasets, dataset_digests
from app.services.limits import Limits
from app.services.map_creation import kept_rows
from app.services.measurements import RECOMMEND, Measurement


class Task(NamedTuple):
    """Rows that maps are measured on, their source, and their labels."""

    rows: Rows
    """Up to `MOST_ROWS` rows, without the column of labels."""
    taken: Places
    """Numbers of these rows among all rows of the dataset, or of the request."""
    n: int
    """Number of all rows of the dataset, or of the request."""
    every: PostedRows | Reference
    """All rows, from which length scales are taken, without the column of labels."""
    dataset: str | None
    """Dataset that samplers may learn from; None if the rows were sent in the request or are narrower than it."""
    labels: Labels | None
    y: tuple[Label, ...] | LabelColumn | None
    """Labels as a job needs them: for rows sent in the request, only those of `rows`, the only rows attached to it."""
    digests: dict[str, str]
    """Digest of the dataset of the labels, by its name."""


def read_labels(
    datasets: Datasets, options: RecommendationOptions, posted: Mapping[str, PostedRows | Reference], given: GatedRows
) -> Task:
    """Return the rows of a request that maps are measured on, with their labels.

    Raises:
        InvalidInput: there are too few labels, too many, or labels that cannot be used.
        DatasetNotFound: the labels are in a dataset that does not exist.
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
    taken = _pick_rows(source, n, options.seed)
    task = Task(rows, taken, n, source, dataset, None, None, {})
    if y is None:
        return task
    if isinstance(y, LabelColumn):
        values, digests = _column(datasets, y, own)
        if y.dataset is None and own is not None:
            task = task._replace(rows=split_off(rows, y.column)[1], every=split_off(own, y.column)[1], dataset=None)
    else:
        values, digests = np.asarray(y, _dtype(y)), {}
    if len(values) != n:
        raise InvalidInput(f"expected {n} labels, one for each row, got {len(values)}", "/y")
    if len(taken) < FEWEST_LABELLED:
        raise InvalidInput(f"expected {FEWEST_LABELLED} labelled rows or more, got {len(taken)}", "/y")
    of_taken = values[taken]
    if of_taken.dtype.kind == "f":
        of_taken = of_taken.astype(np.float64)
    labels = Labels(of_taken, None if options.labels_are is None else options.labels_are == "numbers")
    kept = tuple(of_taken.tolist()) if own is None else y
    return task._replace(labels=labels, y=kept, digests=digests)


def _pick_rows(source: PostedRows | Reference, n: int, seed: int) -> Places:
    """Return the numbers of the rows, out of n, that the gate of this seed lets through."""
    if isinstance(source, Reference) and source.rows is not None:
        numbers = sample_rows(n, source.rows, source.seed)
        return numbers[sample_rows(len(numbers), MOST_ROWS, seed)] if len(numbers) > MOST_ROWS else numbers
    return sample_rows(n, MOST_ROWS, seed) if n > MOST_ROWS else np.arange(n)


def _column(datasets: Datasets, y: LabelColumn, own: Rows | None) -> tuple[NDArray[Any], dict[str, str]]:
    """Return the labels in a column, not copied if dense, and the digest of their dataset if it is not the rows'."""
    digests: dict[str, str] = {}
    if y.dataset is not None:
        own, digests[y.dataset], _ = datasets.read(Reference(y.dataset))
    if own is None:
        raise InvalidInput("vectors came: y is a list, or a column of a dataset that it names", "/y/dataset")
    if y.column >= own.shape[1]:
        raise InvalidInput(f"expected a column number from 0 to {own.shape[1] - 1}, got {y.column}", "/y/column")
    labels = own[:, y.column : y.column + 1] if isinstance(own, np.ndarray) else of_columns(own, np.array([y.column]))
    return made_dense(complete(labels, "/y", "is missing, which is a label"))[:, 0], digests


def _dtype(y: tuple[Label, ...]) -> type:
    """Return the type of the labels in a list; InvalidInput if strings are mixed with other types, or labels merge.

    Strings stay objects: in an array of NumPy's strings, each would be as long as the longest.
    """
    strings = sum(isinstance(one, str) for one in y)
    if 0 < strings < len(y):
        raise InvalidInput(
            f"expected labels that are all strings or all numbers, got {strings} strings of {len(y)}", "/y"
        )
    if not strings and len({*y}) > len({*map(float, y)}):
        raise InvalidInput("some labels differ, and are equal in float64: send them as strings, to be classes", "/y")
    return object if strings else bool if all(isinstance(one, bool) for one in y) else float


# Dtype of the maps that are tried.
_DTYPE = np.dtype(np.float32)
# Multiples of a length scale taken from rows that are tried if the objective is a score.
_MULTIPLES = 0.5, 1.0, 2.0
# Most length scales that a request takes from rows: two ways, in two metrics. Each takes a second or two, and as much
# again for so many entries of sparse rows, or numbers of dense rows if it is taken for each column.
_MOST_SCALES, _MANY_ENTRIES, _MANY_NUMBERS = 4, 1 << 21, 1 << 24
# Multiplications that it takes to look at the sizes of a sampler for a summand of a kernel, and for each number of the
# kernel, such as the length scale of a column; and samplers that are tried if a request names none.
_PER_BLOCK, _PER_NUMBER, _SUGGESTED = 1 << 18, 1 << 12, range(12)


def _gate(seed: int, has_input: bool) -> Gate:
    """Return a gate for the rows to recommend for, which samples more than `MOST_ROWS` rows with this seed.

    If there is an input, entries may be missing, or exceed the range of float32, until the input is applied.
    """

    def some(posted: PostedRows, pointer: str, check: CheckBytes) -> Rows:
        n = posted.shape[0]
        some = posted[sample_rows(n, MOST_ROWS, seed)] if n > MOST_ROWS else posted
        if has_input:
            return floats(some, some.shape[1], np.dtype(np.float64), pointer, check)
        return vectors(some, some.shape[1], _DTYPE, pointer, check=check)

    return some


@contextmanager
def _at_place(place: str) -> Iterator[None]:
    """Make errors about a kernel point to its place in the list of kernels, if there is a list."""
    try:
        yield
    except InvalidInput as error:
        _, kernel, rest = error.pointer.partition("/kernel")
        if not (place and kernel):
            raise
        raise InvalidInput(error.detail, f"/kernel/{place}{rest}") from error


def _operations(asked: Wanted, kernel: Kernel, rows: Rows) -> int:
    """Return the cost of checking all specs of a kernel, and of warnings about the rows, in multiplications."""
    width = int(rows.shape[1])
    blocks = len(kernel.blocks(width)) if isinstance(kernel, ShiftInvariantKernel) else 1
    numbers = sum(len(of_columns) for _, of_columns in kernel if isinstance(of_columns, tuple))
    of_specs = (_PER_BLOCK * blocks + _PER_NUMBER * numbers) * len(asked.samplers or _SUGGESTED)
    rounding = kernel.rounding(_DTYPE)
    return of_specs + (0 if rounding is None else rounding.operations(rows))


def _scales_in_time(rows: Rows, for_each_column: bool) -> int:
    """Return how many length scales of fewer rows take as long as one of these."""
    if isinstance(rows, np.ndarray):
        return 1 + for_each_column * rows.size // _MANY_NUMBERS
    return 1 + int(rows.nnz) // _MANY_ENTRIES


class Recommendations(NamedTuple):
    """Prepares recommendations."""

    datasets: Datasets
    """Datasets that samplers may learn from."""
    limits: Limits
    """Limits on one request, and on the memory of a job, which trials may take."""
    threads: int
    """Number of threads that a trial may use; the measured times are for this number."""

    def _input(
        self, described: Mapping[str, Any] | str | None, source: PostedRows | Reference, task: Task, parse: Parse
    ) -> Input | None:
        """Return the input of a request, with numbers taken from a dataset if it says so; None if there is none.

        Raises:
            InvalidInput: the input does not fit the rows, or the dataset yields none.
        """
        if described is None:
            return None
        own = source.dataset if isinstance(source, Reference) else None
        width, fit = int(task.rows.shape[1]), fit_of(described, parse, own or "vectors")
        if fit is None:
            found: Input = parse(InputMember, to_json({"input": described})).input
            found.check(width)
            return found.with_defaults()
        named = described.get("dataset") if isinstance(described, Mapping) else None
        if named in (None, own) and not isinstance(task.every, Reference):
            rows = floats(task.every, width, np.dtype(np.float64), "/input/dataset")  # without its column of labels
        else:
            rows = rows_of(self.datasets, width, fit.dataset, "/input/dataset")
        return fit_input(fit.fit, rows, fit.missing, fit.unit_norm)

    def _kernels(self, options: RecommendationOptions, asked: Wanted, task: Task, parse: Parse) -> list[Kernel]:
        """Return the kernels of a request at all their length scales, taken from rows after the input if it says so.

        Such a length scale is taken from all rows of the dataset that the kernel names, else of the request's dataset,
        else from all rows sent in the request.

        Raises:
            InvalidInput: a kernel has no length scale, the rows yield none, or the kernel is not defined for the rows.
            TooLarge: the rows would take more memory in dense form than a request may.
        """
        is_one = isinstance(options.kernel, dict)
        came = (options.kernel,) if is_one else options.kernel
        places = [""] if is_one else [str(i) for i in range(len(came))]
        described: list[Any] = []
        scales: list[ScaleOfRows | None] = []
        for place, one in zip(places, came, strict=True):
            with _at_place(place):
                closed, scale = without_scale(one, parse, place)
            described.append(closed)
            scales.append(scale)
        if is_one:
            kernels = (parse(KernelMember, to_json({"kernel": described[0]})).kernel,)
        else:
            kernels = parse(KernelsMember, to_json({"kernel": described})).kernel
        every, found = list[Kernel](), dict[tuple[object, ...], float | tuple[float, ...]]()
        own = task.every.dataset if isinstance(task.every, Reference) else None
        width, operations, taken = int(task.rows.shape[1]), 0, 0
        for place, kernel, scale in zip(places, kernels, scales, strict=True):
            if not kernel.compares_sparse:
                self.limits.check_result(8 * task.rows.shape[0] * task.rows.shape[1])  # size of dense rows
            multiples = options.multiples or (1.0,)
            with _at_place(place):
                if scale is not None:
                    rows, seen = self._rows_of_scale(scale, task), after_input(asked.input, "/kernel/length_scale")
                    each = isinstance(scale.length_scale, ScalePerColumn)
                    by = each, scale.heuristic, kernel.metric, scale.named[0] if scale.named else own
                    if by not in found:
                        taken += _scales_in_time(rows, each)
                        if found and taken > _MOST_SCALES:
                            detail = "too many length scales to be taken from rows in one request: give numbers"
                            raise InvalidInput(detail, "/kernel/length_scale")
                        of_all = length_scale(scale.heuristic, rows, kernel.metric, seen=seen, threads=self.threads)
                        found[by] = scale_of(scale, of_all, rows, seen=seen)
                    kernel = kernel.model_copy(update={"length_scale": found[by]})
                    if options.multiples is None and asked.objective is Objective.score:
                        multiples = _MULTIPLES
                kernel.check(width)
                at = at_multiples(kernel, multiples)
                operations += _operations(asked, kernel, task.rows) * len(at)
                self.limits.check_operations(operations)
                every += at
        return [*dict.fromkeys(every)]

    def _rows_of_scale(self, scale: ScaleOfRows, task: Task) -> Rows:
        """Return the rows from which a length scale is taken."""
        width = int(task.rows.shape[1])
        if scale.named is not None:
            return rows_of(self.datasets, width, *scale.named)
        if isinstance(task.every, Reference):
            return rows_of(self.datasets, width, task.every.dataset, task.every.place)
        return floats(task.every, width, np.dtype(np.float64), "/vectors")

    def measurement(
        self, options: RecommendationOptions, posted: Mapping[str, PostedRows | Reference], parse: Parse
    ) -> Measurement:
        """Prepare a recommendation; `parse` reads its kernels.

        Raises:
            InvalidInput: the rows, the labels or the kernel are not suitable.
            TooLarge: the largest recommended map could not be created.
            DatasetNotFound: the dataset that a sampler learns from, or that has the labels, does not exist.
        """
        given = self.datasets.read_rows(posted, _gate(options.seed, options.input is not None))
        is_dense = isinstance(given.rows["vectors"], np.ndarray)
        if is_dense:
            # In float64, and once more after an input.
            self.limits.check_result((8 if options.input is None else 16) * given.rows["vectors"].size)
        with at_their_datasets(given.references):
            task = read_labels(self.datasets, options, posted, given)
            check_shape(task.rows)
            objective = options.objective or (Objective.error if options.y is None else Objective.score)
            first = self._input(options.input, posted["vectors"], task, parse)
            samplers = None if options.samplers is None else [*dict.fromkeys(options.samplers)]
            asked = Wanted(options.budget, options.target_error, samplers, objective=objective, input=first)
            asked.check(task.labels is not None)
            if asked.input is not None:
                task = task._replace(rows=asked.input.apply(task.rows, "/vectors"))
                check_range(task.rows, _DTYPE, "/vectors", AFTER_INPUT)
        rows, kernels = task.rows, self._kernels(options, asked, task, parse)
        asked, shares = self._shared_out(asked, task, kernels, options.seed)
        n, d = rows.shape
        wanted = self._fitting(asked, n, d, kernels)
        learned = sorted(learned_from(kernels, d, wanted))
        digests = {name: self.datasets.digest(name) for name in learned} | given.digests | task.digests
        kept, source = kept_rows(self.datasets, digests), posted["vectors"]
        called = f"dataset {shorten(source.dataset)}" if isinstance(source, Reference) else "posted rows"

        def run(progress: Progress) -> Finding[Ranking]:
            # Datasets are read before the first trial: later, a missing dataset would look like an error of a sampler.
            rows_of = {name: kept(name, "/samplers") for name in learned}
            with at_their_datasets(given.references):
                answer = recommend(
                    rows,
                    kernels,
                    wanted,
                    seeds=options.seeds,
                    quick=options.mode == "quick",
                    seed=options.seed,
                    shares=shares,
                    labels=task.labels,
                    building=Building(self.threads, progress, lambda dataset, _: rows_of[dataset]),
                )
            return Finding(answer, drawing(answer, called))

        # Warnings of kernels for whose float32 maps the rows are too far from 0; the first ones are reported.
        doubts = (coarseness_warnings(kernel.rounding(_DTYPE), rows, True, "vectors") for kernel in kernels)
        # Numbers for the job, in place of everything that the request takes from rows.
        numbers = {
            "kernel": tuple(kernel.model_dump(mode="json") for kernel in kernels),
            "multiples": (1.0,),
            "input": None if wanted.input is None else wanted.input.model_dump(mode="json"),
            "y": task.y,
        }
        return Measurement(
            kind=RECOMMEND,
            subject={"kernel": ", ".join(dict.fromkeys(kernel.kind for kernel in kernels))},
            options=options.model_copy(update=numbers),
            given=given,
            digests=dataset_digests(digests),
            run=run,
            nbytes=max(recommended_bytes(n, d, wanted, kernel, is_dense) for kernel in kernels),
            warnings=next(filter(None, doubts), ()),
        )

    def _shared_out(self, asked: Wanted, task: Task, kernels: list[Kernel], seed: int) -> tuple[Wanted, Shares]:
        """Split the rows; also return the wishes, with the dataset of the rows if a sampler is to learn from it."""
        strata = None if task.labels is None else task.labels.strata()
        of_dataset = asked._replace(dataset=task.dataset)
        learns = task.dataset is not None and task.dataset in learned_from(kernels, task.rows.shape[1], of_dataset)
        if not learns or (task.n < FEWEST_ROWS and asked.samplers is None):
            return asked, shared_out(task.taken, task.n, seed, strata=strata)
        shares = shared_out(task.taken, task.n, seed, learns=True, strata=strata)
        return of_dataset._replace(learned_rows=len(shares.reported.learned)), shares

    def _fitting(self, asked: Wanted, n: int, input_dim: int, kernels: list[Kernel]) -> Wanted:
        """Return the wishes reduced to the limits, for n rows; raise TooLarge if the best map could not be created."""
        for kernel in kernels:
            asked = fitting(
                asked, n, input_dim, kernel, map_bytes=self.limits.max_map_bytes, work_bytes=self.limits.max_job_bytes
            )
        self.limits.check_map(max(widest_map_bytes(input_dim, asked, kernel) for kernel in kernels))
        return asked
