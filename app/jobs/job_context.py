"""Context passed to job handlers: payload, attachments, progress reports and checkpoints."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import orjson
import redis

from app.core.progress import Progress
from app.jobs import checkpoints, scripts
from app.jobs.record import NotMine
from app.jobs.scripts import key
from app.store import pieces
from app.store.account import UNLIMITED, Account, Entry, Quota
from app.store.connection import places_of
from app.store.errors import QuotaExceeded, StoreUnavailable

logger = logging.getLogger(__name__)

# Shortest time between two progress reports: five a second are enough.
_PROGRESS_SECONDS = 0.2
# Running time after which the remaining time is estimated. The first steps predict the rest poorly: they load and
# compile, or take almost no time.
_ETA_SECONDS = 1.0
# Pause between two checkpoints: at most the work that the death of a process may cost, and, within that limit, long
# enough that checkpoints take about a twentieth of the time at most.
_CHECKPOINT_SECONDS = 10.0
_SHORTEST_PAUSE = 0.5
_PAUSE_FACTOR = 20.0


class JobContext(Progress):
    """One attempt to run a job.

    `fields` is the job's record at the start of the attempt, `message` the id of the queue message that started it. The
    store refuses writes of the attempt once the job has another message.
    """

    def __init__(
        self, client: redis.Redis, job_id: str, message: str, fields: dict[str, str], quota: Quota = UNLIMITED
    ) -> None:
        self.job_id = job_id
        self.message = message
        self.owner = fields.get("owner", "")
        self._client, self.places = client, places_of(client)
        self._account = Account(client, quota)
        self._fields = fields
        written = pieces.read(client, key(job_id, "payload", self.places), int(fields.get("payload_pieces", 1)))
        packed: dict[str, Any] = orjson.loads(written)
        self.payload: dict[str, Any] = packed["payload"]
        self._attachments: dict[str, tuple[str, int]] = packed["attachments"]
        self._written = dict[str, int]()
        """Lengths of what has been written since the last checkpoint, by prefix."""
        self._first: tuple[float, int] | None = None
        self._untold: tuple[int, int, float | None] | None = None
        self._reported = 0.0
        self._worked = not fields.get("checkpoint")
        self._next_checkpoint = time.monotonic() + _SHORTEST_PAUSE

    def attachment(self, name: str) -> bytes:
        """Return bytes that were submitted with the job."""
        prefix, length = self._attachments[name]
        return pieces.read(self._client, prefix, pieces.count(length))

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        """Report progress, see `Progress.report`. Most calls do nothing; a report that the store refuses is dropped."""
        now = time.monotonic()
        if self._first is None or not self._worked:
            # Steps restored from a checkpoint took no time, so they must not count in the estimate.
            self._first = (now, step)
        self._untold = step, of, objective
        if now >= self._reported + _PROGRESS_SECONDS or step >= of:
            self.tell()

    def tell(self) -> None:
        """Report the last progress, if it has not been reported yet."""
        if self._untold is None or self._first is None:
            return
        (step, of, objective), self._untold = self._untold, None
        now = self._reported = time.monotonic()
        began, first = self._first
        tells = step > first and now >= began + _ETA_SECONDS
        eta = f"{(now - began) / (step - first) * (of - step):.3f}" if tells else ""
        with suppress(StoreUnavailable):
            self._run("progress", *checkpoints.progress(step, of, objective).values(), eta)

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """Store a state if the previous one was stored some time ago; see `save`."""
        self._worked = True
        if time.monotonic() >= self._next_checkpoint:
            self.save(make_state)

    def save(self, make_state: Callable[[], bytes]) -> None:
        """Store a state in place of the previous one, whole or not at all; see `Progress.save`.

        A state of more than MAX_CHECKPOINT_BYTES is not stored, nor is any later one: if the process dies, the job
        resumes from the previous one.

        Raises:
            NotMine: the job no longer belongs to this attempt.
        """
        self._worked = True
        began = time.monotonic()
        made = checkpoints.pack_state(make_state())
        if len(made) > checkpoints.MAX_CHECKPOINT_BYTES:
            logger.warning("job %s: a checkpoint of %d bytes is not kept", self.job_id, len(made))
            self._next_checkpoint = math.inf
            return
        prefix, before = key(self.job_id, checkpoints.name(made), self.places), self._fields.get("checkpoint", "")
        try:
            # A checkpoint with the same content as the previous one is no progress.
            is_new = checkpoints.content_of(prefix) != checkpoints.content_of(before)
            if is_new and not self._run("checkpoint", prefix, keys=self.write(prefix, made)):
                raise NotMine(self.job_id)
            # The script has removed the previous checkpoint, and `restore` may be called again.
            if is_new:
                self._fields |= {"checkpoint": prefix, "checkpoint_pieces": str(pieces.count(len(made)))}
                self._written.clear()
        except (StoreUnavailable, QuotaExceeded):
            # The previous checkpoint is still stored, and the next one will do.
            self._account.discard(pieces.keys(prefix, len(made)), [prefix])
        ended = time.monotonic()
        self._next_checkpoint = ended + min(_CHECKPOINT_SECONDS, max(_SHORTEST_PAUSE, _PAUSE_FACTOR * (ended - began)))

    def confirm(self) -> None:
        """Raise NotMine if the job no longer belongs to this attempt."""
        self.announce([])

    def restore(self) -> bytes | None:
        """Return the state of the last checkpoint: from this attempt, an earlier one, or the job's submission.

        None if there is no checkpoint, or if other versions made it.
        """
        prefix = self._fields.get("checkpoint")
        if not prefix:
            return None
        made = pieces.read(self._client, prefix, int(self._fields["checkpoint_pieces"]))
        return checkpoints.unpack_state(made)

    def announce(self, keys: list[str]) -> None:
        """Register keys about to be written with a time to live; the job's end deletes keys that still have one.

        Raises:
            NotMine: the job no longer belongs to this attempt.
        """
        if not self._run("announce", keys=keys):
            raise NotMine(self.job_id)

    def write(self, prefix: str, data: bytes) -> list[str]:
        """Write bytes that are deleted when the job ends, unless its end keeps them; return their keys.

        Raises:
            QuotaExceeded: there is no room for the bytes.
            NotMine: the job no longer belongs to this attempt.
        """
        self.announce(pieces.keys(prefix, len(data)))
        self._written[prefix] = len(data)
        deadline = self._account.charge([Entry(prefix, len(data))], self.owner)
        return pieces.write(self._client, prefix, data, deadline)

    def discard_written(self) -> None:
        """Remove what `write` has written since the last checkpoint, and its entries in the account.

        Raises:
            NotMine: the job no longer belongs to this attempt: its end may be stored, and keep what was written.
        """
        written = [key for prefix, length in self._written.items() for key in pieces.keys(prefix, length)]
        if written and not self._run("discard", keys=written):
            raise NotMine(self.job_id)
        self._written.clear()

    def _run(self, name: str, *args: Any, keys: list[str] | None = None) -> Any:
        return scripts.run(self._client, name, self.job_id, self.message, *args, keys=keys or [])


Result = Mapping[str, bytes | list[bytes]] | None
"""Bodies by media type, the first being the default for clients without a preference, and a list being the pages of a
body; or None if the handler has stored its result elsewhere."""

Handler = Callable[[Mapping[str, Any], JobContext], Result]
"""Function that does the work of a job, called with the payload in a separate process.

The process may be killed at any moment. The handler is then called again, with the last checkpoint, and must return the
same result as an uninterrupted run. InvalidInput and TooLarge fail the job with their detail; other exceptions are
internal errors.
"""

Handlers = Mapping[str, Handler]
"""Job handlers by kind of job."""
