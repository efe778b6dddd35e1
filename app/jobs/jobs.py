"""Jobs as seen by everything except the workers: submit, read, list, count, cancel, fetch results.

The scripts that change jobs also count them in the store. All services on one store therefore see the same counts, and
the counts survive the death of any process.
"""

import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import accumulate, chain
from typing import Any, NamedTuple, cast

import orjson
import redis

from app.core.model import Described
from app.jobs import checkpoints, scripts
from app.jobs.checkpoints import FORMAT, Checkpoint
from app.jobs.record import (
    Body,
    JobHasEnded,
    JobHasNoResult,
    JobNotFound,
    JobRecord,
    JobState,
    ResultElsewhere,
    TooManyJobs,
    bodies,
    progress,
    record,
)
from app.jobs.scripts import GROUP, INDEX, LEASE_SECONDS, QUEUE, SECONDS, TALLY, key
from app.request_context import REQUEST, link_to
from app.store import identity, pieces
from app.store.account import UNLIMITED, Account, Entry, Quota
from app.store.connection import acknowledge, at_once, digit, inside, places_of
from app.store.errors import NewerVersion, QuotaExceeded, StoreDamaged, StoreUnavailable, store_errors
from app.store.named import LivingManifest, NameTaken, Reservation, State

logger = logging.getLogger(__name__)


class Seconds(NamedTuple):
    """Histogram of the durations of jobs of one kind, and their sum."""

    buckets: list[tuple[str, int]]
    """Pairs of an upper bound in seconds and the cumulative number of jobs up to it; the last bound is `+Inf`."""
    total: float


class Tally(NamedTuple):
    """Counts and durations of jobs."""

    queued: int
    running: int
    ended: dict[tuple[str, str], int]
    """Ended jobs by kind and state."""
    ran: dict[str, Seconds]
    """Time from start to end of jobs, by kind."""
    waited: dict[str, Seconds]
    """Time from submission to start of jobs, by kind."""


def _queue(client: redis.Redis, root: str) -> tuple[int, int]:
    """Return how many jobs of a shard wait or run, and how many run. A job whose worker has died counts as waiting."""
    queue = inside(root, QUEUE)
    with store_errors():
        there = client.xlen(queue)
        read = cast("list[dict[str, int]]", client.xpending_range(queue, GROUP, "-", "+", 1000)) if there else []
    return there, sum(one["time_since_delivered"] < 1000 * LEASE_SECONDS for one in read)


def _number_of(client: redis.Redis, roots: Sequence[str], owner: str) -> int:
    """Return how many jobs of an owner wait or run in some shards."""
    read = at_once(client, roots, lambda asked, root: asked.xrange(inside(root, QUEUE)))
    return sum(message.get(b"owner") == owner.encode() for _, message in chain.from_iterable(read))


def _seconds(counts: Counter[str], of: str) -> dict[str, Seconds]:
    """Return histograms by kind of job, read from fields such as `ran le 0.1 build` and `ran milliseconds build`."""
    found, bounds = {}, [*map(str, SECONDS), "Inf"]
    for field in counts:
        what, measure, *kind = field.split(" ")
        if (what, measure) == (of, "milliseconds"):
            cumulated = accumulate(counts[f"{of} le {bound} {kind[0]}"] for bound in bounds)
            found[kind[0]] = Seconds(list(zip([*bounds[:-1], "+Inf"], cumulated, strict=True)), counts[field] / 1000)
    return found


STARTING = "bochner:jobs:starting"
_STARTING_SECONDS = 120
# Number of records examined for one page of jobs in a given state.
_LOOKED_AT = 1000


def say_starting(client: redis.Redis, parts: str) -> None:
    """Store what a starting worker is compiling, which queued jobs then show; delete this if `parts` is empty."""
    with suppress(StoreUnavailable), store_errors():
        at = inside(places_of(client).roots[0], STARTING)
        client.set(at, parts, ex=_STARTING_SECONDS) if parts else client.delete(at)


def waiting_for(client: redis.Redis) -> str:
    """Return what a queued job waits for, as a phrase for people."""
    with store_errors():
        parts = cast(bytes | None, client.get(inside(places_of(client).roots[0], STARTING)))
    return f"a worker that starts, and compiles {parts.decode()}" if parts else "a worker"


class JobPage(Described):
    """Page of jobs, oldest first."""

    jobs: list[JobRecord]
    """Jobs, the oldest first."""
    next: str | None
    """Cursor of the next page; null on the last one."""


class Event(NamedTuple):
    """Change of a job: its id in the event stream, and the new values of the record's fields for state and progress."""

    id: str
    changed: dict[str, Any]

    @property
    def last(self) -> bool:
        """Whether this is the job's last event."""
        return bool(self.changed["state"].ended)


class Jobs:
    """Jobs of the store: at most `max_queued` may wait, and ended jobs are kept for `ttl` seconds.

    Every method may raise StoreUnavailable.
    """

    def __init__(self, client: redis.Redis, max_queued: int, ttl: float, quota: Quota = UNLIMITED) -> None:
        self._client, self._places = client, places_of(client)
        self._account = Account(client, quota)
        self._max_queued = max_queued
        self._ttl = round(ttl)

    @staticmethod
    def new_id(beside: str = "") -> str:
        """Return an id for a job to be submitted; ids sort by the time at which they were made.

        `beside` is the name of the thing that the job makes; the job is stored in the same shard.
        """
        drawn = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(6)}"
        return drawn[:-1] + digit(beside) if beside else drawn

    def submit(
        self,
        kind: str,
        payload: Mapping[str, Any],
        *,
        attachments: Mapping[str, bytes] | None = None,
        subject: Mapping[str, str] | None = None,
        result_link: str = "",
        reservation: Reservation | None = None,
        job_id: str | None = None,
        checkpoint: Checkpoint | None = None,
        owner: str = "",
    ) -> JobRecord:
        """Submit a job to run in the background. Once this returns, the job is kept until it has ended.

        Args:
            kind: name of the job's handler.
            payload: input of the handler; any JSON value.
            attachments: bytes that are too large for the payload, such as request bodies or `.npy`.
            subject: what the job is for, shown to people and clients.
            result_link: where the result will be, if the handler stores it itself.
            reservation: reservation of the name of the thing that the job will make.
            job_id: id from `new_id`, if the caller needs it beforehand; with a reservation, one in the same shard.
            checkpoint: where the first attempt resumes, unless the state is too large to be kept.
            owner: owner, in the account, of the job and of all that it makes.

        Raises:
            TooManyJobs: too many jobs wait, or the owner has as many in the queue as may still be added.
            NameTaken: the name to be reserved is taken.
            QuotaExceeded: there is no room for the job's input.
        """
        job_id = job_id or self.new_id()
        said = {"kind": kind, "subject": orjson.dumps(dict(subject or {})).decode(), "result_link": result_link}
        said |= {"owner": owner} if owner else {}
        if (request := REQUEST.get()) is not None:
            said |= {"request_id": request.request_id, "traceparent": request.traceparent}
        parts, fields = self._draft(job_id, payload, attachments or {}, checkpoint)
        sizes = (Entry(prefix, len(data)) for prefix, data in parts.items())
        charged = [Entry(self._key(job_id, "record"), 0, 1), *sizes]
        written = [one for prefix, data in parts.items() for one in pieces.keys(prefix, len(data))]
        entries = [entry.key for entry in charged]
        if reservation is not None:
            written += reservation.pieces
            entries.append(reservation.entry)
        try:
            deadline = self._account.charge(charged, owner)
            for prefix, data in parts.items():
                pieces.write(self._client, prefix, data, deadline)
            self._submit(job_id, fields | said, reservation, written)
        except (StoreUnavailable, TooManyJobs, NameTaken, QuotaExceeded):
            # The job may have been submitted although the reply was lost. Then the script has made its keys permanent,
            # and `discard` leaves permanent keys alone.
            self._account.discard(written, entries)
            raise
        return self.get(job_id)

    def get(self, job_id: str) -> JobRecord:
        """Return the record of a job; raises what `fields` raises."""
        return _record(job_id, self.fields(job_id), partial(waiting_for, self._client))

    def page(self, state: JobState | None, cursor: str | None, limit: int) -> JobPage:
        """Return a page of jobs, oldest first, and the id after which to continue.

        With a `state`, a page may have fewer than `limit` jobs although more pages follow.
        """
        looked_at = max(limit, _LOOKED_AT) if state else limit
        lowest = "-" if cursor is None else f"({cursor}"
        listed = at_once(
            self._client,
            self._places.roots,
            lambda asked, root: asked.zrangebylex(inside(root, INDEX), lowest, "+", start=0, num=looked_at + 1),
        )
        ids = [one.decode() for one in sorted(chain.from_iterable(listed))[: looked_at + 1]]
        found: list[JobRecord] = []
        after = None
        stored = at_once(self._client, ids[:looked_at], lambda asked, one: asked.hgetall(self._key(one, "record")))
        if not ids or not all(stored):  # a list must not lack what a backup will put back
            for root in self._places.roots:
                identity.check(self._client, root)
        wait = cache(partial(waiting_for, self._client))
        for job_id, fields in zip(ids, stored, strict=False):
            after = job_id
            if not fields:  # it expired just now
                continue
            try:
                job = _record(job_id, _fields(job_id, fields), wait)
            except (NewerVersion, StoreDamaged) as error:  # the others must still be listed
                logger.warning("left out of the list: %s", error)
                continue
            if state is None or job.state is state:
                found.append(job)
            if len(found) == limit:
                break
        return JobPage(jobs=found, next=None if not ids or after == ids[-1] else after)

    def tally(self) -> Tally:
        """Return how many jobs wait, run and have ended, and how long they took."""
        found = [_queue(self._client, root) for root in self._places.roots]
        there, running = (sum(each) for each in zip(*found, strict=True))
        counts = Counter[str]()
        for stored in at_once(self._client, self._places.roots, lambda asked, root: asked.hgetall(inside(root, TALLY))):
            counts.update({field.decode(): int(count) for field, count in stored.items()})
        ended = {}
        for field, count in counts.items():
            what, state, *kind = field.split(" ")
            if what == "ended":
                ended[kind[0], state] = count
        return Tally(there - running, running, ended, _seconds(counts, "ran"), _seconds(counts, "waited"))

    @acknowledge()
    def cancel(self, job_id: str, receipt: str = "") -> JobRecord:
        """Cancel a job. A running job is still `running` in the returned record, and is stopped a moment later.

        If this frees the name that the job holds, the `receipt` is stored, for `NamedStore.delete` to find.

        Raises JobHasEnded, and what `fields` raises.
        """
        self.fields(job_id)
        args = [self._ttl, receipt, secrets.token_hex(8)]
        before = scripts.run(self._client, "cancel", job_id, "", *args).decode()
        if not before:
            raise JobNotFound(job_id)
        if before not in ("queued", "running"):
            how = {"made": "ended", "cancelled": "been cancelled"}.get(before, before)
            raise JobHasEnded(f"job {job_id} has already {how}")
        return self.get(job_id)

    def cancel_making(self, kind: type[LivingManifest], stored: bytes, receipt: str) -> None:
        """Cancel the job, if any, that makes the thing of a stored manifest; this frees the thing's name."""
        with suppress(StoreDamaged, NewerVersion, JobNotFound, JobHasEnded):
            there = kind.parse(stored)
            if there.state is State.building and there.job is not None:
                self.cancel(there.job, receipt)

    def result(self, job_id: str) -> list[Body]:
        """Return the bodies of a job's result, several of one media type being pages; read them with `parts`.

        Raises:
            JobNotFound: there is no such job.
            JobHasNoResult: the job has not succeeded, or has no result at all.
            ResultElsewhere: the result is at another address.
        """
        fields = self.fields(job_id)
        state = JobState(fields["state"])
        if state is not JobState.succeeded:
            raise JobHasNoResult(f"job {job_id} is {state}" + ("" if state.ended else "; it has no result yet"))
        if not bodies(fields):
            if fields.get("result_link"):
                raise ResultElsewhere(link_to(fields["result_link"]))
            raise JobHasNoResult(f"job {job_id} has made nothing to fetch")
        return bodies(fields)

    def parts(self, job_id: str, body: Body) -> Iterator[bytes]:
        """Yield the chunks of the body of a job's result; JobNotFound if the job expires meanwhile."""
        try:
            yield from pieces.parts(self._client, body.prefix, body.pieces)
        except StoreDamaged:
            self.fields(job_id)
            raise

    def events(self, job_id: str, after: str) -> list[Event]:
        """Return the events of a job after the event `after` ("0": all that are kept), oldest first.

        At most 100 are returned at a time. Raises JobNotFound.
        """
        with store_errors():
            answer = self._client.xrange(self._key(job_id, "events"), min=f"({after}", count=100)
            if not answer and not self._client.exists(self._key(job_id, "record")):
                raise JobNotFound(job_id)
        found = cast("list[tuple[bytes, dict[bytes, bytes]]]", answer)
        return [
            Event(at.decode(), progress({name.decode(): value.decode() for name, value in fields.items()}))
            for at, fields in found
        ]

    def fields(self, job_id: str) -> dict[str, str]:
        """Return the stored fields of a job.

        Raises:
            JobNotFound: there is no such job.
            NewerVersion: a newer version stored the job, in a format that this one does not know.
            StoreDamaged: the fields cannot be read.
        """
        with store_errors():
            stored = cast(dict[bytes, bytes], self._client.hgetall(self._key(job_id, "record")))
        if not stored:
            identity.check(self._client, self._places.of_job(job_id))
            raise JobNotFound(job_id)
        return _fields(job_id, stored)

    def _key(self, job_id: str, part: str) -> str:
        return key(job_id, part, self._places)

    def _draft(
        self, job_id: str, payload: Mapping[str, Any], attachments: Mapping[str, bytes], checkpoint: Checkpoint | None
    ) -> tuple[dict[str, bytes], dict[str, str]]:
        """Return the data stored beside a job's record, by key prefix, and the fields that describe it.

        A checkpoint whose state is too large to be kept is left out.
        """
        parts = {self._key(job_id, f"attachment:{i}"): data for i, data in enumerate(attachments.values())}
        described = {name: (prefix, len(data)) for name, (prefix, data) in zip(attachments, parts.items(), strict=True)}
        packed = orjson.dumps({"payload": payload, "attachments": described})
        parts[self._key(job_id, "payload")] = packed
        fields = {"payload_pieces": str(pieces.count(len(packed)))}
        if checkpoint is not None and len(checkpoint.state) <= checkpoints.MAX_CHECKPOINT_BYTES:
            prefix = self._key(job_id, f"checkpoint:{secrets.token_hex(4)}")
            state = checkpoints.pack_state(checkpoint.state)
            parts[prefix] = state
            fields |= {"checkpoint": prefix, "checkpoint_pieces": str(pieces.count(len(state)))}
            if checkpoint.of:
                fields |= checkpoints.progress(checkpoint.step, checkpoint.of, checkpoint.objective)
        return parts, fields

    @acknowledge()
    def _submit(
        self, job_id: str, fields: Mapping[str, str], reservation: Reservation | None, written: list[str]
    ) -> None:
        reserved = Reservation("", "", "", b"", [], "") if reservation is None else reservation
        keys = [] if reservation is None else [reserved.key, reserved.listing]
        # Jobs of other shards are counted before the script runs, so simultaneous submissions may exceed the limit.
        others = [root for root in self._places.roots if root != self._places.of_job(job_id)]
        elsewhere = sum(there - running for there, running in (_queue(self._client, root) for root in others))
        most, owner = self._max_queued - elsewhere, fields.get("owner", "")
        own = _number_of(self._client, others, owner) if owner else 0
        args = [most, reserved.manifest, reserved.name, owner, own, *chain.from_iterable(fields.items())]
        answer = scripts.run(self._client, "submit", job_id, "", *args, keys=keys + written)
        match answer[0]:
            case b"taken":
                raise NameTaken(reserved.name)
            case b"full":
                raise TooManyJobs(answer[1] + elsewhere, self._max_queued, answer[2])
            case b"expired":
                raise StoreUnavailable(f"pieces of job {job_id} expired before they were all written")


def _fields(job_id: str, stored: Mapping[bytes, bytes]) -> dict[str, str]:
    """Read the stored fields of a job; raise NewerVersion or StoreDamaged."""
    try:
        made = int(stored.get(b"format", 1))
        read = {name.decode(): value.decode() for name, value in stored.items()}
    except ValueError as error:
        raise StoreDamaged(f"the record of job {job_id} cannot be read") from error
    if made > FORMAT:
        raise NewerVersion(f"job {job_id}", f"format {made}", FORMAT)
    return read


def _record(job_id: str, fields: dict[str, str], wait: Callable[[], str]) -> JobRecord:
    """Return the record that the fields of a job make; `wait` says what a queued job waits for."""
    try:
        found = record(fields)
    except (KeyError, ValueError) as error:
        raise StoreDamaged(f"the record of job {job_id} cannot be read") from error
    if found.state is JobState.queued:
        found.waiting_for = wait()
    return found
