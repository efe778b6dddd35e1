"""`bochner serve`: run the service and, unless the settings name a store, a private store with it."""

import gc
import logging
import signal
import socket
import ssl
import sys
from contextlib import nullcontext
from typing import Any

from app.commands.options import AddParser, add_settings, checked_settings
from app.jobs.worker import WorkerSupervisor
from app.logs import configuration
from app.metrics import share_directory
from app.own_process import ended_soon_after
from app.request_context import start_spans
from app.settings import Settings, share_counters
from app.store.embedded import EmbeddedStore

logger = logging.getLogger(__name__)

# Seconds in which each of several processes must respond, or it is killed and replaced. Some computations block the
# interpreter for seconds.
_ANSWER_SECONDS = 10


def add(add_parser: AddParser) -> None:
    """Add the command."""
    parser = add_parser("serve", help="run the service")
    add_settings(parser)
    parser.set_defaults(run=run)


def run(**options: Any) -> None:
    """Run the service until a signal stops it; then stop its private store, if it has one."""
    import uvicorn

    settings = checked_settings(options)
    if settings.workers == 1:  # otherwise this process only watches the processes that call get_ready()
        gc.disable()  # get_ready() enables it
    _check_tls(settings)
    start_spans(settings.traces).close()  # ValueError if traces are not possible
    _check_address(settings)
    if not settings.keys_required and not settings.listens_locally:
        logger.warning("whoever reaches %s:%d may do everything: keys are switched off", settings.host, settings.port)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end_once)
    embedded = None
    if settings.redis_url is None:
        embedded = EmbeddedStore(settings.data_dir, settings.store_binary, settings.min_free_bytes)
    with ended_soon_after(), embedded or nullcontext(), share_directory() as directory:
        if embedded is not None:
            settings = settings.model_copy(update={"redis_url": embedded.url})
        data = "REDIS_URL" if embedded is None else settings.data_dir.absolute()
        page = f"http{'s' * bool(settings.tls_certificate)}://{settings.host}:{settings.port}/"
        logger.info("data in %s; a page for browsers at %s", data, page)
        settings.export()
        share_counters(directory)
        with WorkerSupervisor(settings.job_workers):
            uvicorn.run(
                "app.main:create_app",
                factory=True,
                host=settings.host,
                port=settings.port,
                workers=settings.workers,
                log_config=configuration(settings.log_format, settings.log_level),
                log_level=settings.log_level,
                access_log=False,  # app/api/observation.py writes it
                server_header=False,
                loop="app.connections:Loop",
                http="app.connections:Connection",
                ws="none",
                proxy_headers=bool(settings.trusted_proxies),
                forwarded_allow_ips=settings.trusted_proxies,
                ssl_certfile=settings.tls_certificate,
                ssl_keyfile=settings.tls_key,
                timeout_keep_alive=settings.idle_timeout,
                # A stalled client must not prevent an orderly stop of the store.
                timeout_graceful_shutdown=settings.shutdown_timeout,
                timeout_worker_healthcheck=_ANSWER_SECONDS,
            )
            _ignore_signals()


def _end_once(*_: object) -> None:
    """End the service, and ignore further signals so that they do not interrupt this.

    uvicorn has its own handlers while it serves. With one process, it raises the received signals again once it has
    shut down; with several processes, it does not.
    """
    _ignore_signals()
    sys.exit(0)


def _ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _check_tls(settings: Settings) -> None:
    """Raise ValueError if files for HTTPS are named but cannot be used."""
    certificate, key = settings.tls_certificate, settings.tls_key
    if certificate is None:
        if key is not None:
            raise ValueError("tls_key is set, and tls_certificate is not")
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except OSError as error:
        raise ValueError(f"tls_certificate {certificate} and tls_key {key} cannot be served: {error}") from error


def _check_address(settings: Settings) -> None:
    """Raise ValueError if the service cannot listen at its address; checked before the store, which may load long."""
    try:
        found = socket.getaddrinfo(
            settings.host or None, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        socket.create_server(address[:2], family=family).close()
    except OSError as error:
        said = f"the service cannot listen at host {settings.host}, port {settings.port}: {error.strerror}"
        raise ValueError(f"{said}; name another with --port or --host, or end what listens there") from error
