"""The service, with a line written down for each job that is worked to its end, and with a fault if one is named.

Run it as the service is run; one of the faults may stand before the command.
"""

import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from app import __main__, handlers
from app.jobs.job_context import Handler, Handlers, JobContext
from app.settings import Settings


def missing_sync() -> None:
    """The store leaves it to the system when to write."""
    from app.store import server

    server.OPTIONS = tuple("no" if option == "always" else option for option in server.OPTIONS)  # type: ignore[assignment]


def stale_cache() -> None:
    """What is kept in memory is known by its name only."""
    from app.services import cache

    cache._key = lambda manifest: f"{manifest.kind} {manifest.name}"


def resurrected_key() -> None:
    """A late writer puts back every fourth thing that is deleted."""
    from app.store.named import NamedStore

    delete, deleted = NamedStore.delete, list[str]()

    def undone(self: NamedStore[Any], name: str, *args: Any) -> bool:
        stored = self._store(name)
        keys = [] if stored is None else [self.key(name), *self._pieces(name, stored)]
        kept: dict[str, Any] = {key: self._client.get(key) for key in keys}
        was_there = delete(self, name, *args)
        deleted.append(name)
        if kept and len(deleted) % 4 == 0:
            threading.Timer(0.3, lambda: self._client.mset(kept)).start()
        return was_there

    NamedStore.delete = undone  # type: ignore[method-assign, assignment]


def leak() -> None:
    """Every request leaves a kilobyte behind."""
    from app.api import middleware

    new_exchange, kept = middleware._Exchange.__init__, list[bytes]()

    def leaking(self: middleware._Exchange, *args: Any) -> None:
        kept.append(bytes(1024))
        new_exchange(self, *args)

    middleware._Exchange.__init__ = leaking  # type: ignore[method-assign, assignment]


def job_done_twice() -> None:
    """The message of a job that builds a map comes back whenever it has ended, and nobody looks whether it waits."""
    from app.jobs import scripts

    claim, end = scripts._SCRIPTS["claim"], scripts._SCRIPTS["end"]
    scripts._SCRIPTS["claim"] = claim.replace("if get('state') ~= 'queued' or ", "if ")
    again = "if get('placeholder_key') ~= '' then enqueue() end\nreturn 1\n"
    scripts._SCRIPTS["end"] = end.removesuffix("return 1\n") + again


FAULTS: dict[str, Callable[[], None]] = {
    fault.__name__: fault for fault in (missing_sync, stale_cache, resurrected_key, leak, job_done_twice)
}


_service_handlers = handlers.job_handlers


def noting(handler: Handler) -> Handler:
    """The same handler, which writes down the job's id when its work is done."""

    def work(payload: Mapping[str, Any], context: JobContext) -> Any:
        result = handler(payload, context)
        with Path(os.environ["SOAK_DONE"]).open("a", encoding="ascii") as done:
            done.write(f"{context.job_id}\n")
        return result

    return work


def noted_handlers(settings: Settings) -> Handlers:
    """The handlers of the service, all of which write down what they have done."""
    return {kind: noting(handler) for kind, handler in _service_handlers(settings).items()}


if __name__ == "__main__":
    handlers.job_handlers = noted_handlers
    if sys.argv[1] in FAULTS:
        FAULTS[sys.argv.pop(1)]()
    sys.argv[0] = "bochner"
    __main__.main()
