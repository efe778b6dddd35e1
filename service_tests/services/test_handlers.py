"""Handlers of jobs."""

from typing import Any

import numpy as np
import orjson
import pytest
import redis

from app.core.diagnostics import DIAGNOSTICS
from app.handlers import job_handlers
from app.jobs.job_context import JobContext
from app.jobs.record import JobRecord
from app.services.measurements import DIAGNOSE
from app.settings import Settings
from app.store.named import LivingStore
from service_tests.services.crowds import GMM, service_with


def test_the_map_of_a_diagnostic_does_not_expire_meanwhile(
    store_url: str, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, used, using = service_with(store_url, GMM), list[list[str]](), LivingStore.using

    def noted(store: LivingStore[Any], *things: Any) -> Any:
        used.append([one.name for one in things])
        return using(store, *things)

    monkeypatch.setattr(LivingStore, "using", noted)
    subject = service.maps.open("m")
    given = service.datasets.read_rows({"vectors": np.eye(5)}, subject.feature_map.spec.gate)
    measurement = service.measurements.diagnostic(subject, DIAGNOSTICS["collisions"].model_validate({}), given)
    job = service.measurements.run_or_submit(measurement, None)
    assert isinstance(job, JobRecord)
    context = JobContext(client, job.id, "", service.jobs.fields(job.id))
    result = job_handlers(Settings(redis_url=store_url))[DIAGNOSE](context.payload, context)
    assert result is not None
    assert orjson.loads(result["application/json"])  # type: ignore[arg-type]
    assert used == [["m"]]
