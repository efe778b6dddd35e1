"""Diagnostics, recommendations and advice, run in a request or by a job, with the same result either way."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from scipy import sparse

from app.core.arrays import Rows, made_dense
from app.core.datasets import Reference
from app.core.diagnostics import Diagnostic, Finding
from app.core.drawing import NAMED_OF_KERNELS, NAMED_OF_SAMPLERS, map_name
from app.core.errors import InvalidInput
from app.core.indexes.advice import AdviceOptions, advice_bytes, advise, check
from app.core.indexes.answer import Advice
from app.core.model import Frozen
from app.core.progress import OutOfTime, Progress, pack_arrays, unpack_arrays
from app.jobs.checkpoints import Checkpoint
from app.jobs.jobs import Jobs
from app.jobs.record import JobRecord
from app.services.datasets import Datasets, GatedRows, at_their_datasets, dataset_digests, rows_in
from app.services.limits import Limits
from app.services.maps import Maps, OpenMap
from app.services.vectors import warnings_of

# Memory of an entry of attached sparse rows: its value and its column.
_BYTES_PER_STORED = 16
DIAGNOSE, RECOMMEND, ADVISE = "diagnose", "recommend", "advise"

_MEMORY_ADVICE = (
    "take a map of fewer hashes, or a dataset of fewer rows, for which bands have a larger share to look at"
)


class Measurement(NamedTuple):
    """Diagnostic, recommendation or advice that is ready to run, with everything that a job needs to run it."""

    kind: str
    """Kind of the job that runs it."""
    subject: Mapping[str, str]
    """Subject, as the record of the job names it."""
    options: Frozen
    """Options of the request. If a length scale is taken from rows, they contain the resulting number."""
    given: GatedRows
    """Rows of the request."""
    digests: Mapping[str, str]
    """Digests of the map and the datasets, keyed by the phrase that names each in error messages."""
    run: Callable[[Progress], Finding[Mapping[str, object]]]
    nbytes: int
    """Memory that the work takes in bytes, without its rows."""
    advice: str = ""
    """Text added to the error for too much memory: how to take less, if there is a way."""
    warnings: tuple[str, ...] = ()
    """Doubts about the rows, for the client."""

    def check_same(self, digests: Mapping[str, str]) -> None:
        """Raise InvalidInput if a map or dataset has changed since the job was submitted."""
        changed = [called for called, digest in self.digests.items() if digest != digests.get(called)]
        if changed:
            raise InvalidInput(f"{changed[0]} is not the one that was there when the job was submitted")


class Adviser(NamedTuple):
    """Prepares advice."""

    maps: Maps
    datasets: Datasets
    limits: Limits
    threads: int
    """Number of threads that the advice may use; the measured times are for this number."""

    def measurement(self, options: AdviceOptions) -> Measurement:
        """Prepare advice on an index over a map, for rows like those of a dataset.

        Raises:
            MapNotFound, MapNotReady, DatasetNotFound: the options' map or dataset does not exist, or is not ready.
            InvalidInput: the map has no codes, or the dataset has too few rows, or rows of another width.
        """
        subject = self.maps.open(options.map)
        options = options.model_copy(update={"map": subject.name})  # in place of an alias, which may move
        feature_map = subject.feature_map
        given = self.datasets.read_rows({"vectors": Reference(options.dataset)}, feature_map.spec.gate)
        rows = given.rows["vectors"]
        with at_their_datasets(given.references):
            check(feature_map, int(rows.shape[0]), options.k)
        self.limits.check_operations(feature_map.warning_operations(rows))

        def run(progress: Progress) -> Finding[Advice]:
            with subject.in_use(), at_their_datasets(given.references):
                return advise(feature_map, rows, options, progress, self.threads)

        return Measurement(
            kind=ADVISE,
            subject={"map": options.map},
            options=options,
            given=given,
            digests={f"map {subject.name!r}": subject.digest, **dataset_digests(given.digests)},
            run=run,
            nbytes=advice_bytes(feature_map, rows, options.k),
            advice=_MEMORY_ADVICE,
            warnings=warnings_of(feature_map, given.rows),
        )


class Measurements(NamedTuple):
    """Prepares diagnostics, and runs measurements or submits jobs that run them."""

    jobs: Jobs
    limits: Limits
    """Limits on one request, in which a measurement may take as much memory as a result, and on a job."""
    threads: int
    """Number of threads that a diagnostic may use."""

    def diagnostic(self, subject: OpenMap, diagnostic: Diagnostic, given: GatedRows) -> Measurement:
        """Prepare a diagnostic of a map, for rows that the gate of the map has checked.

        Raises:
            InvalidInput: it is already clear that there is no answer.
            TooLarge: the rows that the diagnostic generates take more memory than a request may.
        """
        feature_map, rows = subject.feature_map, given.rows
        with at_their_datasets(given.references):
            diagnostic.check(feature_map, rows)
        self.limits.check_result(diagnostic.made_rows_bytes(feature_map))
        self.limits.check_operations(sum(map(feature_map.warning_operations, rows.values())))

        def run(progress: Progress) -> Finding[Mapping[str, object]]:
            with subject.in_use(), at_their_datasets(given.references):
                return _add_title(diagnostic.run(feature_map, rows, progress, self.threads), subject)

        return Measurement(
            kind=DIAGNOSE,
            subject={"map": subject.name, "diagnostic": diagnostic.kind},
            options=diagnostic,
            given=given,
            digests={f"map {subject.name!r}": subject.digest, **dataset_digests(given.digests)},
            run=run,
            nbytes=diagnostic.memory_bytes(feature_map, rows),
            advice=diagnostic.memory_advice,
            warnings=warnings_of(feature_map, rows),
        )

    def run_or_submit(
        self, measurement: Measurement, progress: Progress | None, owner: str = ""
    ) -> Finding[Mapping[str, object]] | JobRecord:
        """Run a measurement and return its finding, or the job that continues it after the progress has ended it.

        Without `progress`, the job does all the work. The job counts towards `owner`'s quota.

        Raises:
            TooLarge: the work takes more memory than any job may.
            InvalidInput: there is no answer.
            TooManyJobs: a job is needed, and the job queue is full.
            QuotaExceeded: there is no room for the job's payload and rows.
        """
        self.limits.check_job(measurement.nbytes, measurement.advice)
        checkpoint = None
        if progress is not None and measurement.nbytes <= self.limits.max_result_bytes:
            try:
                return measurement.run(progress)
            except OutOfTime as over:
                checkpoint = Checkpoint(over.state, over.step, over.of, over.objective)
        return self._submit(measurement, checkpoint, owner)

    def _submit(self, measurement: Measurement, checkpoint: Checkpoint | None, owner: str) -> JobRecord:
        rows, references = measurement.given.rows, measurement.given.references
        datasets = ", ".join(dict.fromkeys(one.dataset for one in references.values()))
        payload = {
            **measurement.subject,
            "options": measurement.options.model_dump_json(),
            # Rows without a reference are attached.
            "rows": {member: [*references[member]] if member in references else None for member in rows},
            "digests": measurement.digests,
        }
        return self.jobs.submit(
            measurement.kind,
            payload,
            attachments={member: attach_rows(rows[member]) for member in rows if member not in references},
            subject={**measurement.subject, **({"dataset": datasets} if datasets else {})},
            checkpoint=checkpoint,
            owner=owner,
        )


def _add_title(finding: Finding[Mapping[str, object]], subject: OpenMap) -> Finding[Mapping[str, object]]:
    """Return the finding with the name of its map as the title of its figure."""
    if finding.drawing is None:
        return finding
    spec = subject.feature_map.spec
    kernel = spec.kernel.model_dump(include=NAMED_OF_KERNELS)
    sampler = spec.sampler.model_dump(include=NAMED_OF_SAMPLERS)
    title = map_name(subject.name, kernel, sampler, subject.feature_map.n_frequencies)
    return finding._replace(drawing=finding.drawing._replace(title=title))


def attach_rows(rows: Rows) -> bytes:
    """Return rows in the form in which they are attached to a job; dense rows of few entries without their zeros."""
    made_sparse = {}
    if isinstance(rows, np.ndarray):
        if _BYTES_PER_STORED * np.count_nonzero(rows) >= rows.nbytes:
            return pack_arrays(rows=rows)
        rows, made_sparse = sparse.csr_array(rows), {"is_dense": np.array(True)}
    shape = np.array(rows.shape)
    return pack_arrays(values=rows.data, indices=rows.indices, indptr=rows.indptr, shape=shape, **made_sparse)


def detach_rows(attachment: bytes) -> Rows:
    """Return the rows that were passed to `attach_rows`, in their dtype and form."""
    arrays = unpack_arrays(attachment)
    rows = rows_in(arrays, arrays.get("shape", ()))
    return made_dense(rows) if "is_dense" in arrays else rows
