"""The creation of indexes whose bands are left to a target: advised at once, or by a job where that takes long."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from app.core.errors import InvalidInput
from app.core.indexes.advice import AdviceOptions
from app.core.indexes.banding import Banding
from app.core.progress import OutOfTime, Progress
from app.jobs.checkpoints import Checkpoint
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.jobs.record import JobRecord
from app.services.advice import Adviser
from app.services.errors import DatasetNotFound, IndexExists, MapNotFound, MapNotReady
from app.services.index_spec import AskedIndex, IndexRecord
from app.services.indexes import Indexes
from app.services.limits import Limits
from app.services.measurements import Measurement

KIND = "put-index"


class IndexCreation(NamedTuple):
    """Makes indexes with the bands that a target wants."""

    indexes: Indexes
    adviser: Adviser
    jobs: Jobs
    limits: Limits

    def create(
        self, name: str, asked: AskedIndex, ttl: int | None, owner: str, progress: Progress | None
    ) -> tuple[IndexRecord, bool] | JobRecord:
        """Make an index with a target, unless the same is there; or have a job do so, where the progress ends it.

        Without a progress, the job does all of it.

        Raises:
            DatasetNotFound: the dataset of the target is not there.
            InvalidInput: nothing has the recall that is wanted, or the dataset does not tell.
            TooLarge: the advice takes more memory than any job may.
            TooManyJobs: it takes a job, and as many wait as may.
        It raises what `Indexes.create` does, too.
        """
        there = self.indexes.there(name, asked, ttl)
        if there is not None:
            return there, False
        measurement = self._measurement(asked)
        self.limits.check_job(measurement.nbytes, measurement.advice)
        checkpoint = None
        if progress is not None and measurement.nbytes <= self.limits.max_result_bytes:
            try:
                return self.indexes.create(name, asked, ttl, owner, _banding(measurement, progress))
            except OutOfTime as over:
                checkpoint = Checkpoint(over.state, over.step, over.of, over.objective)
        return self.jobs.submit(
            KIND,
            {"name": name, "asked": asked.model_dump_json(), "ttl": ttl, "digests": measurement.digests},
            subject={"index": name},
            result_link=f"/v1/indexes/{name}",
            checkpoint=checkpoint,
            owner=owner,
        )

    def go_on(self, payload: Mapping[str, Any], context: JobContext) -> None:
        """Make the index of a job; InvalidInput where it cannot be made any more."""
        name, asked = payload["name"], AskedIndex.model_validate_json(payload["asked"])
        try:
            # An earlier attempt may have made the index and died before it could say so.
            if self.indexes.there(name, asked, payload["ttl"]) is None:
                measurement = self._measurement(asked)
                measurement.check_same(payload["digests"])
                banding = _banding(measurement, context)
                self.indexes.create(name, asked, payload["ttl"], context.owner, banding)
        except (IndexExists, MapNotFound, MapNotReady, DatasetNotFound) as error:
            raise InvalidInput(str(error)) from error

    def _measurement(self, asked: AskedIndex) -> Measurement:
        if asked.target is None:
            raise ValueError("there is no target")
        wanted = AdviceOptions(map=asked.map, keep=asked.keep, **asked.target.model_dump())
        try:
            return self.adviser.measurement(wanted)
        except InvalidInput as error:
            raise _of_target(error) from error


def _banding(measurement: Measurement, progress: Progress) -> Banding | None:
    """The bands that have the recall, None for a scan that has it; InvalidInput where nothing has."""
    try:
        answer: Mapping[str, Any] = measurement.run(progress).answer
    except InvalidInput as error:
        raise _of_target(error) from error
    best = answer["best"]
    if best != "scan":
        return Banding(**best)
    if not answer["scan"]["serves"]:
        raise InvalidInput(answer["why"], "/target/recall")
    return None


def _of_target(error: InvalidInput) -> InvalidInput:
    """The refusal, which points to where the body of an index names the dataset."""
    return InvalidInput(error.detail, "/target/dataset") if error.pointer == "/dataset" else error
