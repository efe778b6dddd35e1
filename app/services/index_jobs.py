"""Jobs on indexes: creation of indexes with the bands that a target needs, and search for duplicates."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import orjson

from app.core.errors import InvalidInput
from app.core.indexes import labels
from app.core.indexes.advice import AdviceOptions
from app.core.indexes.banding import Banding, Image
from app.core.indexes.duplicates import BYTES_PER_ROW, Duplicates, duplicates
from app.core.indexes.options import DuplicatesOptions
from app.core.model import Described
from app.core.progress import OutOfTime, Progress
from app.jobs.checkpoints import Checkpoint
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.jobs.record import JobRecord, NotMine
from app.services.cache import latest
from app.services.errors import DatasetNotFound, IndexNotFound, IndexNotReady, MapNotFound, MapNotReady
from app.services.index_vectors import Images
from app.services.indexes import AskedIndex, Indexes, IndexRecord, OpenIndex, Searching
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
        banding, serves = _searching(measurement, context)
        try:
            bands, rows_per_band = banding or (None, None)
            self.store.complete(reserved, bands, rows_per_band, serves)
        except NameTaken:
            raise NotMine(context.job_id) from None

    def _measurement(self, asked: AskedIndex) -> Measurement:
        if asked.target is None:
            raise ValueError("there is no target")
        wanted = AdviceOptions(map=asked.map, keep=asked.keep, **asked.target.model_dump())
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
    return Searching(None if best == "scan" else Banding(**best), answer["serves"])


def _of_target(error: InvalidInput) -> InvalidInput:
    """Return the error with a pointer to the dataset in the body of a request for an index."""
    return InvalidInput(error.detail, "/target/dataset") if error.pointer == "/dataset" else error


DUPLICATES = "duplicates"
# Memory for an id: as stored, as a Python object, and in the answer.
_BYTES_PER_ID = 192


class DuplicatesAnswer(Described):
    """The duplicates in an index."""

    clusters: list[list[int | str]]
    """Clusters of at least two ids of vectors, in order; each vector is linked to others of its cluster by pairs of the
    requested similarity or more. Large clusters come first. Two vectors of a cluster may be less similar, if others
    connect them.
    """
    size: int
    """Number of vectors in the index."""
    min_similarity: float
    """Similarity from which pairs count as duplicates, as asked."""
    standard_error: float | None
    """Standard error of similarity estimates at `min_similarity`: pairs within a few standard errors of it may be on
    either side. It is 0 for a similarity of 1, although pairs some 3/s below 1 can be found too, s being the number of
    hashes.
    """
    compared: int
    """Number of comparisons of two vectors. Pairs that were not compared are certain to be less similar, by their
    codes, or were in one cluster already.
    """


class IndexDuplicates(NamedTuple):
    """Finds duplicates in indexes by jobs, each on `threads` threads."""

    indexes: Indexes
    images: Images
    jobs: Jobs
    limits: Limits
    threads: int

    def submit(self, name: str, options: DuplicatesOptions, owner: str = "") -> JobRecord:
        """Submit a job that finds the duplicates in an index; the job counts towards `owner`'s quota.

        Raises:
            IndexNotFound: there is no such index.
            TooLarge: the work takes more memory than a job may.
            TooManyJobs: the job queue is full.
            QuotaExceeded: there is no room for the job.
        """
        opened = self.indexes.open(name)
        per_vector = BYTES_PER_ROW + _BYTES_PER_ID + _whole(opened).layout.bytes_per_vector
        self.limits.check_job(opened.state.size * per_vector)
        payload = {"index": name, "token": opened.manifest.token, "options": options.model_dump_json()}
        return self.jobs.submit(DUPLICATES, payload, subject={"index": name}, owner=owner)

    def answer(self, payload: Mapping[str, Any], progress: Progress) -> bytes:
        """Compute the answer of a job, as JSON; raise InvalidInput if its index no longer exists."""
        name, options = payload["index"], DuplicatesOptions.model_validate_json(payload["options"])

        def find() -> bytes:
            opened = _whole(self.indexes.open(name))
            if opened.manifest.token != payload["token"]:
                raise InvalidInput(f"index {name!r} is not the one that was there when the job was submitted")
            least = opened.codes.least(options.min_similarity, is_decided_later=False)
            with self.images.looked_at(opened.manifest, opened.state) as image:
                s, bits = opened.codes.s, opened.codes.bits
                found = duplicates(image.codes, s, bits, max(1, least), self.threads, progress)
                return _write_answer(options, opened, image, found, least)

        try:
            return latest(find)
        except (IndexNotFound, IndexNotReady) as error:
            raise InvalidInput(str(error)) from error


def _whole(opened: OpenIndex) -> OpenIndex:
    """Return the index without its bands: these serve searches only, and sorting vectors into them would be wasted."""
    manifest = opened.manifest.model_copy(update={"bands": None, "rows_per_band": None})
    return opened._replace(manifest=manifest, layout=opened.layout._replace(banding=None))


def _write_answer(options: DuplicatesOptions, opened: OpenIndex, image: Image, found: Duplicates, least: int) -> bytes:
    """Return the answer as JSON."""
    _, errors = opened.codes.similarities(np.array([least]))
    told = {
        "size": image.size,
        "min_similarity": options.min_similarity,
        "standard_error": float(errors[0]),
        "compared": found.compared,
    }
    # One cluster at a time, as all ids of an index take much memory as Python objects.
    clusters = b",".join(map(orjson.dumps, _ids(image, found)))
    return b'{"clusters":[' + clusters + b"]," + orjson.dumps(told)[1:]


def _ids(image: Image, found: Duplicates) -> Iterator[list[int | str]]:
    """Yield the ids of each cluster, sorted, numbers first."""
    ids = np.array([one for block in image.ids for one in labels.every(block)], np.object_)
    for slots in found.clusters():
        yield sorted(map(labels.read, ids[slots]), key=lambda one: (isinstance(one, str), one))
