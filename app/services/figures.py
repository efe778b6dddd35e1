"""Figures of the store and of jobs, for operators."""

import platform
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from app.jobs.jobs import Jobs, Seconds
from app.metrics import declared
from app.metrics.declared import Declared
from app.services.status import versions
from app.store.account import Account, Quota
from app.store.connection import Client
from app.store.errors import StoreUnavailable
from app.store.servers import StoreInfo, memory_of


class StoreFigures(Collector):
    """Asks the store whenever it is collected."""

    def __init__(
        self, client: Client, account: Account, quota: Quota, jobs: Jobs, keeping: Callable[[], StoreInfo]
    ) -> None:
        self._client, self._account, self._quota, self._jobs = client, account, quota, jobs
        self._keeping = keeping

    def collect(self) -> Iterator[Metric]:
        """The metrics that are declared as asked for. Without the store, only whether it is there."""
        found = versions()
        info = GaugeMetricFamily(declared.INFO.name, declared.INFO.told, labels=declared.INFO.labels)
        info.add_metric([found["bochner"], found["numpy"], found["scipy"], platform.python_version()], 1)
        yield info
        try:
            asked = [*self._of_store(), *self._of_jobs()]
        except StoreUnavailable:
            yield _gauge(declared.STORE_UP, 0)
        else:
            yield _gauge(declared.STORE_UP, 1)
            yield from asked

    def _of_store(self) -> Iterator[Metric]:
        usage = self._account.usage()
        yield _gauge(declared.STORE_BYTES, usage.nbytes)
        yield _gauge(declared.STORE_NAMES, usage.names)
        yield _gauge(declared.STORE_BYTES_LIMIT, self._quota.max_store_bytes)
        yield _gauge(declared.STORE_NAMES_LIMIT, self._quota.max_store_names)
        yield _gauge(declared.STORE_MEMORY, memory_of(self._client))
        yield _gauge(declared.STORE_WARNINGS, len(self._keeping().warnings))

    def _of_jobs(self) -> Iterator[Metric]:
        tally = self._jobs.tally()
        jobs = GaugeMetricFamily(declared.JOBS.name, declared.JOBS.told, labels=declared.JOBS.labels)
        jobs.add_metric(["queued"], tally.queued)
        jobs.add_metric(["running"], tally.running)
        yield jobs
        ended = CounterMetricFamily(
            declared.JOBS_ENDED.name, declared.JOBS_ENDED.told, labels=declared.JOBS_ENDED.labels
        )
        for labels, count in tally.ended.items():
            ended.add_metric(labels, count)
        yield ended
        yield _histogram(declared.JOB_SECONDS_RUN, tally.ran)
        yield _histogram(declared.JOB_SECONDS_WAITED, tally.waited)


def _gauge(of: Declared, value: float | None) -> Metric:
    found = GaugeMetricFamily(of.name, of.told)
    if value is not None:  # a limit that there is not
        found.add_metric([], value)
    return found


def _histogram(of: Declared, by_kind: Mapping[str, Seconds]) -> Metric:
    found = HistogramMetricFamily(of.name, of.told, labels=of.labels)
    for kind, seconds in by_kind.items():
        found.add_metric([kind], [*seconds.buckets], seconds.total)
    return found
