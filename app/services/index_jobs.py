"""Jobs that create indexes with the bands that a target needs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.core.errors import InvalidInput
from app.core.indexes.advice import AdviceOptions
from app.core.indexes.banding import Banding
from app.core.progress import OutOfTime, Progress
from app.jobs.checkpoints import Checkpoint
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.jobs.record import JobRecord, NotMine
from app.services.errors import DatasetNotFound, MapNotFound, MapNotReady
from app.services.indexes import AskedIndex, Indexes, IndexRecord, Searching
from app.services.limits import Limits
from app.services.measurements import Adviser, Measurement
from app.store.indexes import IndexStore
from app.store.named import NameTaken, Reservation

PUT_INDEX = "put-index"


class IndexCreation(NamedTuple):
    """Creates indexes with the bands that a target needs."""

    store: IndexStore
    indexes: Indexes
    adviser: Adviser
    jobs: Jobs
    limits: Limits

    def create(
        self, name: str, asked: AskedIndex, ttl: int | None, owner: str, progress: Progress | None
    ) -> tuple[IndexRecord, bool]:
        """Create an index with a target, unless the same index exists.

        If `progress` stops the work because it takes too long, a job continues it; without `progress`, a job does it
        all. The name of the index is reserved as soon as there is a job.

        Returns:
            The record, and whether the index is new.

        Raises:
            DatasetNotFound: the dataset of the target does not exist.
            InvalidInput: the map has no codes, or the dataset does not fit it.
            TooLarge: the advice takes more memory than any job may.
            TooManyJobs: a job is needed, and the job queue is full.
        Also raises what `Indexes.create` raises.
        """
        asked = self.indexes.resolve(asked)  # once, as an alias may move while bands are measured
        there = self.indexes.there(name, asked, ttl)
        if there is not None:
            return there, False
        measurement = self._measurement(asked)
        self.limits.check_job(measurement.nbytes, measurement.advice)
        checkpoint = None
        if progress is not None and measurement.nbytes <= self.limits.max_result_bytes:
            try:
                return self.indexes.create(name, asked, ttl, owner, _searching(measurement, progress))
            except OutOfTime as over:
                checkpoint = Checkpoint(over.state, over.step, over.of, over.objective)

        def submit(job_id: str, reservation: Reservation) -> JobRecord:
            return self.jobs.submit(
                PUT_INDEX,
                {"name": name, "digests": measurement.digests},
                subject={"index": name},
                result_link=f"/v1/indexes/{name}",
                reservation=reservation,
                job_id=job_id,
                checkpoint=checkpoint,
                owner=owner,
            )

        return self.indexes.create(name, asked, ttl, owner, submit=submit)

    def go_on(self, payload: Mapping[str, Any], context: JobContext) -> None:
        """Find the bands of the index whose name the job has reserved, and make the index ready.

        Raises:
            InvalidInput: the map or dataset of the request has changed.
            NotMine: the index is no longer wanted.
        """
        reserved = self.store.find(payload["name"])
        if reserved is None or reserved.job != context.job_id:
            # An earlier attempt may have made the index and died before it could report success.
            return
        try:
            measurement = self._measurement(AskedIndex.model_validate_json(reserved.asked))
        except (MapNotFound, MapNotReady, DatasetNotFound) as error:
            raise InvalidInput(str(error)) from error
        measurement.check_same(payload["digests"])
        banding, serves, _ = _searching(measurement, context)
        try:
            bands, rows_per_band = banding or (None, None)
            self.store.complete(reserved, bands, rows_per_band, serves)
        except NameTaken:
            raise NotMine(context.job_id) from None

    def _measurement(self, asked: AskedIndex) -> Measurement:
        if asked.target is None:
            raise ValueError("there is no target")
        wanted = AdviceOptions(map=asked.map, keep=asked.keep, **asked.target.model_dump(exclude={"min_similarity"}))
        try:
            return self.adviser.measurement(wanted)
        except InvalidInput as error:
            raise _of_target(error) from error


def _searching(measurement: Measurement, progress: Progress) -> Searching:
    """Return the bands that reach the recall, or a scan if that is best, or if nothing reaches it."""
    try:
        answer: Mapping[str, Any] = measurement.run(progress).answer
    except InvalidInput as error:
        raise _of_target(error) from error
    best = answer["best"]
    digest = measurement.digests[f"map {measurement.subject['map']!r}"]
    return Searching(None if best == "scan" else Banding(**best), answer["serves"], digest)


def _of_target(error: InvalidInput) -> InvalidInput:
    """Return the error with a pointer to the dataset in the body of a request for an index."""
    return InvalidInput(error.detail, "/target/dataset") if error.pointer == "/dataset" else error
