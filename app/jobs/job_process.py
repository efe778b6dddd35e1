"""The process that does the work of one job, and ends with it."""

import ctypes
import logging
import multiprocessing
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

import orjson
import redis

from app.core.errors import InvalidInput, InvalidOption, TooLarge
from app.jobs import scripts
from app.jobs.errors import NotMine
from app.jobs.job_context import Handlers, JobContext, Result
from app.jobs.prelude import key
from app.jobs.queue import Message
from app.jobs.record import JobError
from app.store.account import Quota
from app.store.errors import NewerVersion, QuotaExceeded, StoreDamaged, StoreUnavailable, in_full

logger = logging.getLogger(__name__)

# Exit codes: how the job ended is written down; what is stored of it cannot be read; it did not end, for no fault of
# its own.
DONE, UNREADABLE, TRY_AGAIN = 0, 65, 75
_PR_SET_PDEATHSIG = 1
_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0


def main(
    connect: Callable[[], redis.Redis],
    handlers: Handlers,
    message: Message,
    fields: dict[str, str],
    ttl: int,
    quota: Quota,
) -> NoReturn:
    """Be the process of one job, and end with an exit code that says whether its end is written down.

    What connects to the store, handlers, ttl and quota are those of the worker. The message told of the job, whose
    record has the fields.
    """
    _end_with_worker()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        client = connect()
        try:
            context, kind = JobContext(client, message.job_id, message.id, fields, quota), fields["kind"]
        except (StoreDamaged, KeyError, TypeError, ValueError):
            sys.exit(UNREADABLE)
        outcome = _outcome(handlers, context, kind)
        context.tell()
        _end(client, context, ttl, outcome)
    except NotMine:
        logger.warning("job %s was taken away while it ran", message.job_id)
        sys.exit(TRY_AGAIN)
    except StoreUnavailable as error:
        logger.warning("job %s will be begun again: %s", message.job_id, in_full(error))
        sys.exit(TRY_AGAIN)
    sys.exit(DONE)


def _end_with_worker() -> None:
    """Have this process killed when its worker dies; what it computes would be for nobody."""
    if sys.platform == "linux":
        # Compiled loops keep every thread of Python waiting, so only the system can be relied on.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        worker = multiprocessing.parent_process()
        if worker is not None:
            worker.join()
            os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def _outcome(handlers: Handlers, context: JobContext, kind: str) -> Result | JobError:
    try:
        return handlers[kind](context.payload, context)
    except (NotMine, StoreUnavailable):
        raise
    except InvalidInput as error:
        return JobError(reason="invalid-input", detail=error.detail, pointer=error.pointer)
    except InvalidOption as error:
        return JobError(reason="invalid-input", detail=f"{error.option}: {error.detail}")
    except TooLarge as error:
        return JobError(reason="too-large", detail=error.detail)
    except NewerVersion as error:
        return JobError(reason="newer-version", detail=str(error))
    except QuotaExceeded as error:
        return _no_room(error)
    except MemoryError:
        return JobError(reason="memory", detail="there was not enough memory for it")
    except Exception:
        logger.exception("job %s failed", context.job_id)
        detail = f"the service failed; its log has the id of the job, {context.job_id}"
        return JobError(reason="internal-error", detail=detail)


def _end(client: redis.Redis, context: JobContext, ttl: int, outcome: Result | JobError) -> None:
    """Write the end down, however long the store is away: what was computed is not to be computed again."""
    pause = _PAUSE_SECONDS
    while True:
        try:
            error = outcome.model_dump_json() if isinstance(outcome, JobError) else ""
            bodies, kept = (b"", []) if isinstance(outcome, JobError) else _written(context, outcome)
            state = "failed" if error else "succeeded"
            args = [context.message, state, ttl, error, bodies]
            done = scripts.run(client, "end", context.job_id, *args, keys=kept)
        except QuotaExceeded as full:
            outcome = _no_room(full)
        except StoreUnavailable as away:
            logger.warning("the end of job %s is not written down yet: %s", context.job_id, in_full(away))
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        else:
            if not done:
                raise NotMine(context.job_id)
            return


def _no_room(error: QuotaExceeded) -> JobError:
    return JobError(reason="quota", detail=str(error))


def _written(context: JobContext, outcome: Result) -> tuple[bytes, list[str]]:
    """The bodies of a result, stored; and all their keys."""
    described, kept = [], []
    for media_type, body in (outcome or {}).items():
        prefix = key(context.job_id, f"result:{secrets.token_hex(4)}", context.places)
        written = context.write(prefix, body)
        described.append((media_type, prefix, len(written)))
        kept += written
    return orjson.dumps(described), kept
