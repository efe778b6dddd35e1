"""What is measured in its request, and what a job is submitted for."""

from typing import Any, cast

import numpy as np
import pytest
from scipy import sparse

from app.core.datasets import Reference
from app.core.diagnostics import Finding
from app.core.diagnostics.max_error import MaxError
from app.core.errors import TooLarge
from app.core.progress import OutOfTime, Progress
from app.jobs.jobs import Jobs
from app.services.datasets import GatedRows
from app.services.measurements import Measurement, Measurements, attach_rows, detach_rows
from service_tests.services.conftest import LIMITS

ROWS: Any = np.arange(6.0).reshape(2, 3)
FOUND: Finding[Any] = Finding({"rows": 2})


class Submitted:
    """Jobs that remember the last one."""

    def submit(self, kind: str, payload: Any, **others: Any) -> str:
        self.kind, self.payload, self.others = kind, payload, others
        return "job"


def measured(nbytes: int, progress: Progress | None, run: Any = lambda _: FOUND) -> tuple[Any, Submitted]:
    """What becomes of a measurement that takes so much memory, and the job, where requests get 100 and jobs 200."""
    given = GatedRows({"x": ROWS, "y": ROWS}, {"y": Reference("d", 5, 2, "/y")}, {"d": "sha256:1"}, {})
    options, digests = MaxError(diameters=(1.0, 2.0)), {"dataset 'd'": "sha256:1"}
    measurement = Measurement("diagnose", {"map": "m"}, options, given, digests, run, nbytes)
    jobs = Submitted()
    return Measurements(cast(Jobs, jobs), LIMITS._replace(max_result_bytes=100, max_job_bytes=200), 1).run_or_submit(
        measurement, progress
    ), jobs


def unwanted(_: Progress) -> Any:
    pytest.fail("it is a job's work")


@pytest.mark.parametrize(("nbytes", "progress"), [(101, Progress()), (200, Progress()), (0, None)])
def test_what_takes_more_memory_or_shall_not_wait_is_left_to_a_job(nbytes: int, progress: Progress | None) -> None:
    outcome, jobs = measured(nbytes, progress, unwanted)
    assert outcome == "job"
    assert jobs.others["checkpoint"] is None


def test_what_no_job_may_take_is_refused() -> None:
    with pytest.raises(TooLarge) as error:
        measured(201, Progress(), unwanted)
    assert (error.value.limit, error.value.allowed, error.value.value) == ("max_job_bytes", 200, 201)


def test_a_job_goes_on_from_where_time_was_over_with_the_same_options_and_rows() -> None:
    def out_of_time(_: Progress) -> Any:
        raise OutOfTime(b"so far", 3, 7, 0.5)

    outcome, jobs = measured(0, Progress(), out_of_time)
    assert (outcome, jobs.kind, jobs.others["subject"]) == ("job", "diagnose", {"map": "m", "dataset": "d"})
    assert jobs.others["checkpoint"] == (b"so far", 3, 7, 0.5)
    assert MaxError.model_validate_json(jobs.payload["options"]) == MaxError(diameters=(1.0, 2.0))
    assert jobs.payload["map"] == "m"
    assert jobs.payload["rows"] == {"x": None, "y": ["d", 5, 2, "/y"]}
    assert jobs.payload["digests"] == {"dataset 'd'": "sha256:1"}
    assert jobs.others["attachments"].keys() == {"x"}, "what a reference names is read again"
    np.testing.assert_array_equal(cast(Any, detach_rows(jobs.others["attachments"]["x"])), ROWS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("share", "most"), [(0.0, 0.01), (0.01, 0.05), (0.9, 1.0)])
def test_dense_rows_come_back_dense_and_take_no_memory_for_zeros(share: float, most: float, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    rows = (rng.normal(size=(30, 1000)) * (rng.random((30, 1000)) < share)).astype(dtype)
    attached = attach_rows(rows)
    assert len(attached) < 2000 + most * rows.nbytes
    found: Any = detach_rows(attached)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, rows)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_rows_come_back_sparse_however_wide(dtype: Any) -> None:
    parts: Any = (np.array([0.5, -1], dtype), [0, (1 << 31) - 1], [0, 1, 1, 2])
    rows: Any = sparse.csr_array(parts, shape=(3, 1 << 31))
    found: Any = detach_rows(attach_rows(rows))
    assert isinstance(found, sparse.csr_array)
    assert (found.dtype, found.shape) == (dtype, (3, 1 << 31))
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, part), getattr(rows, part))
