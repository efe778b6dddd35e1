"""Readiness of the service, its versions, and metrics for operators."""

import logging
import math
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Literal, NamedTuple, NoReturn, cast

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from app import metrics
from app.jobs.jobs import Jobs
from app.metrics import Declared
from app.services.warm_up import cold
from app.store import backup
from app.store.account import Account, Quota
from app.store.connection import Client
from app.store.errors import StoreFull, StoreReadOnly, StoreUnavailable
from app.store.servers import StoreInfo, memory_of

logger = logging.getLogger(__name__)

# Seconds between two checks for the log, if the service is ready and if it is not; and between two equal log lines.
_LOOK_SECONDS = {True: 5.0, False: 1.0}
_REPEAT_SECONDS = 60.0


class Readiness(NamedTuple):
    """Whether the service can take requests."""

    reason: Literal["ready", "starting", "store-unavailable"]
    """Kind of problem that keeps the service from being ready; `ready` if there is none."""
    told: str
    """The reason as a sentence; "" if there is nothing to say."""
    warnings: Sequence[str]
    """Warnings for the operator."""


@dataclass
class Status:
    """Readiness of the service."""

    keeping: Callable[[], StoreInfo]
    """Asks the store how it keeps data; raises StoreUnavailable if it does not answer."""
    check_writable: Callable[[], list[str]]
    """Raises StoreUnavailable unless the store accepts a key; returns warnings about parts of it that do not."""
    allow_volatile: bool
    """Whether a store that may lose or evict maps is acceptable."""
    seen: Readiness = field(default=Readiness("starting", "", ()))
    """Last observed readiness."""

    def unfit(self) -> str | None:
        """Return why the store may lose accepted maps; None if it will not, or if the operator accepts that."""
        return self._unfit(self.keeping())

    def _unfit(self, store: StoreInfo) -> str | None:
        reason = store.unfit()
        if reason is None or self.allow_volatile:
            return None
        return f"{reason}; BOCHNER_ALLOW_VOLATILE_STORE=true accepts it"

    def readiness(self) -> Readiness:
        """Return whether the service is ready, and why not.

        A full store or a replica does not make the service unready: it still serves what the store has.
        """
        try:
            store = self.keeping()
            warnings = store.warnings
            try:
                warnings = warnings + self.check_writable()
            except (StoreFull, StoreReadOnly) as error:
                warnings = warnings or [str(error)]
        except StoreUnavailable as error:
            return Readiness("store-unavailable", str(error), ())
        if unfit := self._unfit(store):
            return Readiness("store-unavailable", unfit, warnings)
        if cold:
            return Readiness("starting", f"loops are being loaded, or compiled: {', '.join(cold)}", warnings)
        return Readiness("ready", "", warnings)

    def watch(self) -> NoReturn:
        """Log each change of readiness with its reason, and repeat lasting problems once a minute."""
        changed, logged = time.monotonic(), -math.inf
        while True:
            before, found, now = self.seen, self.readiness(), time.monotonic()
            why = "".join(f"; {sentence}" for sentence in (found.told, *found.warnings) if sentence)
            # Sentences may contain numbers that change all the time.
            is_new = found.reason != before.reason or len(found.warnings) != len(before.warnings)
            is_new |= found.reason != "starting" and found.told != before.told
            if is_new or (why and now - logged > _REPEAT_SECONDS):
                level = logging.WARNING if found.reason == "store-unavailable" or found.warnings else logging.INFO
                past = f"after {now - changed:.1f} s of {before.reason}"
                lasts = f"for {now - changed:.1f} s"
                logger.log(level, "%s %s%s", found.reason, lasts if found.reason == before.reason else past, why)
                logged = now
            if found.reason != before.reason:
                changed = now
            self.seen = found
            time.sleep(_LOOK_SECONDS[found.reason == "ready"])


def versions() -> dict[str, str]:
    """Versions of the service and of the libraries that its numbers come from."""
    return {package: version(package) for package in ("bochner", "numpy", "scipy")}


class StoreFigures(Collector):
    """Metrics that are read from the store whenever they are collected."""

    def __init__(self, client: Client, account: Account, quota: Quota, jobs: Jobs, status: Status) -> None:
        self._client, self._account, self._quota, self._jobs = client, account, quota, jobs
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that are measured on request.

        If the store does not answer, only those of the service itself, and the fact that the store is down.
        """
        found = versions()
        told = [found["bochner"], found["numpy"], found["scipy"], platform.python_version()]
        yield _family(GaugeMetricFamily, metrics.INFO, (told, 1))
        reason = self._status.seen.reason
        yield _family(GaugeMetricFamily, metrics.READY, ([reason], reason == "ready"))
        try:
            asked = [*self._of_store(), *self._of_jobs()]
        except StoreUnavailable:
            yield _gauge(metrics.STORE_UP, 0)
        else:
            yield _gauge(metrics.STORE_UP, 1)
            yield from asked

    def _of_store(self) -> Iterator[Metric]:
        usage = self._account.usage()
        yield _gauge(metrics.STORE_BYTES, usage.nbytes)
        yield _gauge(metrics.STORE_NAMES, usage.names)
        yield _gauge(metrics.STORE_BYTES_LIMIT, self._quota.max_store_bytes)
        yield _gauge(metrics.STORE_NAMES_LIMIT, self._quota.max_store_names)
        yield _gauge(metrics.STORE_MEMORY, memory_of(self._client))
        yield _gauge(metrics.STORE_WARNINGS, len(self._status.seen.warnings))
        yield _gauge(metrics.LAST_BACKUP, backup.last(self._client))

    def _of_jobs(self) -> Iterator[Metric]:
        tally = self._jobs.tally()
        yield _family(GaugeMetricFamily, metrics.JOBS, (["queued"], tally.queued), (["running"], tally.running))
        yield _family(CounterMetricFamily, metrics.JOBS_ENDED, *tally.ended.items())
        for of, by_kind in ((metrics.JOB_SECONDS_RUN, tally.ran), (metrics.JOB_SECONDS_WAITED, tally.waited)):
            each = (([kind], [*seconds.buckets], seconds.total) for kind, seconds in by_kind.items())
            yield _family(HistogramMetricFamily, of, *each)


def _family(kind: Callable[..., Any], of: Declared, *samples: tuple[Any, ...]) -> Metric:
    """Return a metric; each sample has the arguments of `add_metric` for one value."""
    found = kind(of.name, of.told, labels=of.labels)
    for sample in samples:
        found.add_metric(*sample)
    return cast(Metric, found)


def _gauge(of: Declared, value: float | None) -> Metric:
    return _family(GaugeMetricFamily, of, *([] if value is None else [([], value)]))  # None: there is no such limit
