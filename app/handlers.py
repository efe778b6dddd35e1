"""Job handlers, which turn a job's payload into work on rows and its result into bodies; and the job worker."""

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from app.container import Container, quota_of, store_client
from app.core.datasets import Reference
from app.core.diagnostics import DIAGNOSTICS
from app.core.errors import InvalidInput
from app.core.indexes.advice import AdviceOptions
from app.core.recommendations.candidates import SettledOptions
from app.formats import Posted, option_bodies
from app.formats.json import Json
from app.jobs.job_context import Handlers, JobContext, Result
from app.jobs.jobs import say_starting
from app.jobs.worker import JobLimits, Worker
from app.metrics import Heartbeat, Slot
from app.request_context import start_spans
from app.services import index_copies, index_duplicates, index_jobs, index_recall, map_creation
from app.services.errors import DatasetNotFound, MapNotFound, MapNotReady
from app.services.measurements import ADVISE, DIAGNOSE, RECOMMEND, Measurement, detach_rows
from app.services.warm_up import cold, get_ready
from app.settings import Settings, counters

logger = logging.getLogger(__name__)


def run_worker(settings: Settings) -> None:
    """Run jobs until the process receives a signal to stop; must be called in the main thread."""
    client, began = store_client(settings), time.monotonic()
    say_starting(client, ", ".join(cold))
    # Each job runs in a process forked from this one, which need not compile again what is compiled here.
    get_ready()
    say_starting(client, "")
    logger.info("the worker takes jobs, after %.1f s", time.monotonic() - began)
    directory = counters()
    if directory is not None:
        Heartbeat(Slot(directory), "worker").start()
    limits = JobLimits(settings.max_job_seconds, settings.max_job_bytes)
    of_store = partial(store_client, settings), settings.store_timeout
    spans = start_spans(settings.traces)
    Worker(*of_store, job_handlers(settings), limits, settings.job_ttl, quota_of(settings), spans).run()
    spans.close()


def job_handlers(settings: Settings) -> Handlers:
    """Return the handlers of all kinds of jobs, using the store at `settings.redis_url`."""
    services = Container(settings)
    return {
        map_creation.KIND: partial(
            map_creation.build_reservation, services.map_store, services.datasets, settings.threads
        ),
        DIAGNOSE: partial(_measure, partial(_diagnostic, services)),
        RECOMMEND: partial(_measure, partial(_recommendation, services)),
        ADVISE: partial(_measure, partial(_advice, services)),
        index_jobs.PUT_INDEX: services.index_creation.go_on,
        index_duplicates.DUPLICATES: lambda payload, context: {
            Json.media_type: services.duplicates.answer(payload, context)
        },
        index_recall.RECALL: lambda payload, context: {Json.media_type: services.recall.answer(payload, context)},
        index_copies.COPY: lambda payload, context: services.copies.copy(payload, context, context.owner),
    }


def _diagnostic(services: Container, context: JobContext) -> Measurement:
    payload = context.payload
    wanted, subject = DIAGNOSTICS[payload["diagnostic"]], services.maps.open(payload["map"])
    spec = subject.feature_map.spec
    options, posted = wanted.model_validate_json(payload["options"]), _read_rows(context)
    # Attached rows were checked, and preprocessed as the map's `input` says, when the job was submitted.
    attached = {member: rows for member, rows in posted.items() if not isinstance(rows, Reference)}
    references = {member: rows for member, rows in posted.items() if isinstance(rows, Reference)}
    given = services.datasets.read_rows(references, spec.gate)
    given.rows.update(attached)
    return services.measurements.diagnostic(subject, options, given)


def _recommendation(services: Container, context: JobContext) -> Measurement:
    options = SettledOptions.model_validate_json(context.payload["options"])
    return services.recommendations.measurement(
        options, _read_rows(context), lambda model, body: model.model_validate_json(body)
    )


def _advice(services: Container, context: JobContext) -> Measurement:
    return services.adviser.measurement(AdviceOptions.model_validate_json(context.payload["options"]))


def _measure(prepare: Callable[[JobContext], Measurement], payload: Mapping[str, Any], context: JobContext) -> Result:
    """Run a measurement and return its result as bodies by media type.

    Raises InvalidInput if a map or dataset is missing, not ready, or no longer the one that the request referred to.
    """
    try:
        measurement = prepare(context)
    except (MapNotFound, DatasetNotFound, MapNotReady) as error:
        raise InvalidInput(str(error)) from error
    measurement.check_same(payload["digests"])
    written = option_bodies.writers(measurement.run(context), measurement.warnings)
    return {media_type: write() for media_type, write in written.items()}


def _read_rows(context: JobContext) -> Posted:
    """Return the rows that a job was submitted with, or references to stored datasets."""
    return {
        member: detach_rows(context.attachment(member)) if reference is None else Reference(*reference)
        for member, reference in context.payload["rows"].items()
    }
