"""Whether the service is ready, its versions, and figures for operators."""

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from app.jobs.jobs import Jobs
from app.jobs.tally import Seconds
from app.metrics import declared
from app.metrics.declared import Declared
from app.services.warm_up import get_ready
from app.store.account import Account, Quota
from app.store.clients import Client
from app.store.errors import StoreFull, StoreReadOnly, StoreUnavailable
from app.store.servers import StoreInfo, memory_of


@dataclass
class Status:
    """Readiness of the service."""

    keeping: Callable[[], StoreInfo]
    """Asks the store how it keeps what it is given; StoreUnavailable if it does not answer."""
    check_writable: Callable[[], list[str]]
    """Raises StoreUnavailable unless the store takes a key; tells of parts of it that do not."""
    allow_volatile: bool
    """Whether a store that may lose or evict maps will do."""
    cold: str | None = "the warm-up has not ended yet"
    """Why requests would have to wait for a compiler; None once they would not."""

    def unfit(self) -> str | None:
        """Why the store may lose maps that it has taken; None if it will not, or if the operator accepts that."""
        return self._unfit(self.keeping())

    def _unfit(self, store: StoreInfo) -> str | None:
        reason = store.unfit()
        if reason is None or self.allow_volatile:
            return None
        return f"{reason}; BOCHNER_ALLOW_VOLATILE_STORE=true accepts it"

    def readiness(self) -> tuple[str | None, list[str]]:
        """Why requests should not come yet, None if the service is ready; and what an operator should look at.

        A store that is full, or a replica, is no reason: what it has is served.
        """
        try:
            store = self.keeping()
            warnings = store.warnings
            try:
                warnings = warnings + self.check_writable()
            except (StoreFull, StoreReadOnly) as error:
                warnings = warnings or [str(error)]
            return self._unfit(store) or self.cold, warnings
        except StoreUnavailable as error:
            return str(error), []

    def warm_up(self) -> None:
        """Compile what is compiled at first use. The service is not ready before."""
        try:
            get_ready()
        except Exception as error:
            self.cold = f"the warm-up failed: {error}"
            raise
        self.cold = None


def versions() -> dict[str, str]:
    """Versions of the service and of the libraries that its numbers come from."""
    return {package: version(package) for package in ("bochner", "numpy", "scipy")}


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
