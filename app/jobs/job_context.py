"""What the work of a job is given beside its payload."""

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
from app.store.errors import QuotaExceeded, StoreUnavailable
from app.store.places import places_of

logger = logging.getLogger(__name__)

# Between two reports of progress at the least: five a second are enough for anybody.
_PROGRESS_SECONDS = 0.2
# Before that, first steps say little of how long the others take: they load and compile, or are over in no time.
_ETA_SECONDS = 1.0
# Between two checkpoints: never longer than the most that a death may cost, and so long that they take a twentieth of
# the time at the most.
_CHECKPOINT_SECONDS = 10.0
_SHORTEST_PAUSE = 0.5
_PAUSE_FACTOR = 20.0


class JobContext(Progress):
    """One attempt at a job, whose record had the fields when the attempt began.

    A message led to the attempt. What the attempt writes is refused once the job has another message.
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
        self._first: tuple[float, int] | None = None
        self._untold: tuple[int, int, float | None] | None = None
        self._reported = 0.0
        self._worked = not fields.get("checkpoint")
        self._next_checkpoint = time.monotonic() + _SHORTEST_PAUSE

    def attachment(self, name: str) -> bytes:
        """Bytes that were submitted with the job."""
        prefix, length = self._attachments[name]
        return pieces.read(self._client, prefix, pieces.count(length))

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        """See `Progress.report`. Most calls do nothing, and a report that the store does not take is dropped."""
        now = time.monotonic()
        if self._first is None or not self._worked:
            # What was restored took no time, and says nothing of the rest.
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
        """See `Progress.checkpoint`. A state is kept in place of the one before, whole or not at all.

        It is not kept if it has more than MAX_CHECKPOINT_BYTES: then the one before, if there is one, is what a death
        costs.

        Raises:
            NotMine: the job is not this attempt's any more.
        """
        self._worked = True
        if time.monotonic() < self._next_checkpoint:
            return
        began = time.monotonic()
        made = checkpoints.pack_state(make_state())
        if len(made) > checkpoints.MAX_CHECKPOINT_BYTES:
            logger.warning("job %s: a checkpoint of %d bytes is not kept", self.job_id, len(made))
            self._next_checkpoint = math.inf
            return
        prefix, before = key(self.job_id, checkpoints.name(made), self.places), self._fields.get("checkpoint", "")
        try:
            # What holds no more than the one before is no step further.
            is_new = checkpoints.content_of(prefix) != checkpoints.content_of(before)
            if is_new and not self._run("checkpoint", prefix, keys=self.write(prefix, made)):
                raise NotMine(self.job_id)
            # The one before is gone, and what goes on from here may be asked for once more.
            if is_new:
                self._fields |= {"checkpoint": prefix, "checkpoint_pieces": str(pieces.count(len(made)))}
        except (StoreUnavailable, QuotaExceeded):
            # The one before is still there, and the next will do.
            self._account.discard(pieces.keys(prefix, len(made)), [prefix])
        ended = time.monotonic()
        self._next_checkpoint = ended + min(_CHECKPOINT_SECONDS, max(_SHORTEST_PAUSE, _PAUSE_FACTOR * (ended - began)))

    def restore(self) -> bytes | None:
        """The last checkpoint, of this attempt or of earlier ones, or that the job was submitted with.

        None if there is none, or if other versions made it.
        """
        prefix = self._fields.get("checkpoint")
        if not prefix:
            return None
        made = pieces.read(self._client, prefix, int(self._fields["checkpoint_pieces"]))
        return checkpoints.unpack_state(made)

    def announce(self, keys: list[str]) -> None:
        """Name keys about to be written with a time to live: those that still have one go when the job ends.

        Raises:
            NotMine: the job is not this attempt's any more.
        """
        if not self._run("announce", keys=keys):
            raise NotMine(self.job_id)

    def write(self, prefix: str, data: bytes) -> list[str]:
        """Write bytes that go with the job, whatever becomes of it; gives the keys.

        Raises:
            QuotaExceeded: there is no room for them. And what `announce` does.
        """
        self.announce(pieces.keys(prefix, len(data)))
        deadline = self._account.charge([Entry(prefix, len(data))], self.owner)
        return pieces.write(self._client, prefix, data, deadline)

    def _run(self, name: str, *args: Any, keys: list[str] | None = None) -> Any:
        return scripts.run(self._client, name, self.job_id, self.message, *args, keys=keys or [])


Result = Mapping[str, bytes] | None
"""Bodies by media type, the first being the one to give where a client wants none before the others; or None, if what
was made is kept elsewhere."""

Handler = Callable[[Mapping[str, Any], JobContext], Result]
"""What a job does: from its payload, in a process of its own, which may be killed at any moment. It is then called
again, with the last checkpoint, and must give the same result as if nothing had happened.

InvalidInput and TooLarge fail the job with their detail; other exceptions are internal errors.
"""

Handlers = Mapping[str, Handler]
"""By the kind of the job."""
