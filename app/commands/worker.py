"""`bochner worker`: run the jobs of a store."""

import argparse
import gc
import os
import signal
import time
from threading import Thread
from typing import Any

from app.commands.options import STORE_SETTINGS, AddParser, add_settings, checked_settings
from app.store.embedded import EmbeddedStore

_SETTINGS = (
    *(*STORE_SETTINGS, "threads", "cache_bytes", "max_job_seconds", "max_job_bytes", "job_ttl", "max_store_bytes"),
    *("max_store_names", "max_map_bytes", "max_dataset_bytes", "max_result_bytes", "max_operations", "traces"),
)
_LOOK_SECONDS = 0.25
_END_SECONDS = 3.0


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("worker", help="run jobs of the store at REDIS_URL")
    add_settings(parser, _SETTINGS)
    parser.add_argument("--parent", type=int, default=argparse.SUPPRESS, help="End when this process is gone.")
    parser.set_defaults(run=run)


def run(parent: int | None = None, **options: Any) -> None:
    """Run jobs until a signal stops the process, or until the process `parent` has ended."""
    settings = checked_settings(options)
    if settings.redis_url is None:
        url = EmbeddedStore(settings.data_dir, settings.store_binary).reachable_url()
        settings = settings.model_copy(update={"redis_url": url})
    if parent is not None:
        Thread(target=_end_with, args=(parent,), name="parent-watch", daemon=True).start()
    gc.disable()  # get_ready() enables it
    # Imported late: a worker needs no web server, and a server needs no job handlers.
    from app.handlers import run_worker

    run_worker(settings)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    # A hanging call to the store may take longer than this process should outlive its parent.
    time.sleep(_END_SECONDS)
    os._exit(1)
