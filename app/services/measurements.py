"""Runs diagnostics and recommendations in their requests, or has jobs run them. Both come to the same finding."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from app.core.diagnostics import Finding
from app.core.errors import TooLarge
from app.core.model import Frozen
from app.core.progress import OutOfTime, Progress
from app.jobs import attached_rows
from app.jobs.checkpoints import Checkpoint
from app.jobs.jobs import Jobs
from app.jobs.record import JobRecord
from app.services.datasets import GatedRows

DIAGNOSE, RECOMMEND = "diagnose", "recommend"


class Measurement(NamedTuple):
    """A diagnostic or a recommendation that is ready to run, and what a job needs to run it."""

    kind: str
    """The kind of its job."""
    subject: Mapping[str, str]
    """What the record of its job names as its subject."""
    options: Frozen
    """The options of the request. A length scale that is taken from the rows is a number in them."""
    given: GatedRows
    """Its rows."""
    digests: Mapping[str, str]
    """The digests of its map and its datasets, by the words for them in a refusal."""
    run: Callable[[Progress], Finding[Mapping[str, object]]]
    nbytes: int
    """The memory that it takes, without its rows."""


class Measurements(NamedTuple):
    """Runs measurements, or submits jobs that run them."""

    jobs: Jobs
    max_bytes: int
    """The most memory that a measurement may take in a request."""
    max_job_bytes: int
    """The most memory that a job may take."""

    def run_or_submit(
        self, measurement: Measurement, progress: Progress | None
    ) -> Finding[Mapping[str, object]] | JobRecord:
        """The finding, or the job that goes on with the measurement.

        Args:
            measurement: what to run.
            progress: of the measurement, which may end it. None: submit a job at once.

        Raises:
            TooLarge: it takes more memory than any job may.
            InvalidInput: there is no answer.
            TooManyJobs: it takes a job, and as many wait as may.
        """
        nbytes = measurement.nbytes
        if nbytes > self.max_job_bytes:
            detail = f"it would take {nbytes} bytes of memory; max_job_bytes is {self.max_job_bytes}"
            raise TooLarge(detail, limit="max_job_bytes", allowed=self.max_job_bytes, value=nbytes)
        checkpoint = None
        if progress is not None and nbytes <= self.max_bytes:
            try:
                return measurement.run(progress)
            except OutOfTime as over:
                checkpoint = Checkpoint(over.state, over.step, over.of, over.objective)
        return self._submitted(measurement, checkpoint)

    def _submitted(self, measurement: Measurement, checkpoint: Checkpoint | None) -> JobRecord:
        rows, references = measurement.given.rows, measurement.given.references
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
            attachments={member: attached_rows.to_bytes(rows[member]) for member in rows if member not in references},
            subject=measurement.subject,
            checkpoint=checkpoint,
        )
