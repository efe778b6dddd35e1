"""Diagnostics and recommendations that are ready to run: done at once, or by a job that comes to the same."""

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
    """What is to be measured, checked and ready to run, and what a job needs to do the same."""

    kind: str
    """Of its job."""
    subject: Mapping[str, str]
    """What it is for, as the record of its job says."""
    options: Frozen
    """Of the request. What it left to the rows is settled in them."""
    given: GatedRows
    digests: Mapping[str, str]
    """Of the map and the datasets that are measured, by what a refusal calls them."""
    run: Callable[[Progress], Finding[Mapping[str, object]]]
    nbytes: int
    """Memory that it takes beside its rows."""


class Measurements(NamedTuple):
    """Runs measurements, or has jobs do so."""

    jobs: Jobs
    max_bytes: int
    """What takes more memory is a job's work."""
    max_job_bytes: int
    """The most memory that a job may take."""

    def run_or_submit(
        self, measurement: Measurement, progress: Progress | None
    ) -> Finding[Mapping[str, object]] | JobRecord:
        """The finding, or the job that will come to it.

        Args:
            measurement: what to measure.
            progress: of the measurement, which a job goes on with where that ends it; None to leave all of it to a job.

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
            # Rows of which there is no reference are attached.
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
