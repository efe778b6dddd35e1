"""Maps that learn from a dataset in a job: every attempt has the rows of the submission, or none."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import redis

from app.core.errors import InvalidInput
from app.core.spec import MapSpec
from app.jobs.job_context import JobContext
from app.jobs.jobs import Jobs
from app.services.building import build
from app.services.cache import Cache
from app.services.datasets import Datasets
from app.store.datasets import DatasetStore
from app.store.maps import MapStore
from service_tests.jobs.site import attempt
from service_tests.services.conftest import LIMITS, Service

SPEC = MapSpec.model_validate(
    {
        "input_dim": 2,
        "kernel": {"kind": "gaussian", "length_scale": 1.5},
        "sampler": {"kind": "global_adaptive", "dataset": "rows", "iterations": 5},
        "s": 4,
    }
)
ROWS = np.array([[0.0, 1.0], [2.0, 3.0], [1.0, 5.0]])


class Killed(BaseException):
    """The end of a process."""


class Mortal(JobContext):
    """An attempt that dies at its first checkpoint, if it has to, and goes on from what another has left."""

    left: bytes | None = None
    dies = False

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        if self.dies:
            self.left = make_state()
            raise Killed

    def restored(self) -> bytes | None:
        return self.left


class Site(NamedTuple):
    """A map that waits for its job."""

    datasets: Datasets
    store: MapStore
    attempt: Mortal

    def run(self) -> None:
        build(self.store, self.datasets, 1, self.attempt.payload, self.attempt)


@pytest.fixture
def submitted(client: redis.Redis, service: Callable[..., Service]) -> Site:
    maps = service()
    datasets = Datasets(DatasetStore(client), LIMITS, Cache(1 << 20), lambda: None)
    datasets.create("rows", ROWS, None)
    job = maps.create("m", SPEC, None).record.job
    assert job is not None
    job_id = job.rpartition("/")[2]
    begun = attempt(client, job_id)
    return Site(datasets, MapStore(client), Mortal(client, job_id, begun.message, Jobs(client, 1, 60).fields(job_id)))


def change(datasets: Datasets, rows: Any) -> None:
    datasets.delete("rows")
    if rows is not None:
        datasets.create("rows", rows, None)


@pytest.mark.parametrize("resumed", [False, True], ids=["first", "resumed"])
@pytest.mark.parametrize(
    ("rows", "detail"),
    [
        (None, "there is no dataset 'rows'"),
        (2 * ROWS, "dataset 'rows' is not the one that was there when the job was submitted"),
        (ROWS[:, :1], "dataset 'rows' is not the one that was there when the job was submitted"),
    ],
    ids=["gone", "other rows", "other columns"],
)
def test_no_attempt_learns_from_another_dataset(submitted: Site, resumed: bool, rows: Any, detail: str) -> None:
    if resumed:
        submitted.attempt.dies = True
        with pytest.raises(Killed):
            submitted.run()
        assert submitted.attempt.left is not None
        submitted.attempt.dies = False
    change(submitted.datasets, rows)
    with pytest.raises(InvalidInput) as refused:
        submitted.run()
    assert (refused.value.detail, refused.value.pointer) == (detail, "/sampler/dataset")


def test_the_same_rows_put_again_will_do(submitted: Site) -> None:
    change(submitted.datasets, ROWS)
    submitted.run()
    assert submitted.store.find("m") is not None
