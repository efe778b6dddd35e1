"""What routes are given to work with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Path, Request

from app.api.admission import Admission
from app.api.shutdown import Shutdown
from app.core.names import NAME_PATTERN
from app.jobs.jobs import Jobs
from app.services.datasets import Datasets
from app.services.limits import Limits
from app.services.maps import Maps
from app.services.measurements import Measurements
from app.services.recommendations import Recommendations
from app.services.status import Status


@dataclass(frozen=True)
class Context:
    """The services of one process, and its limits."""

    limits: Limits
    every_limit: Mapping[str, float]
    """All limits, by name, for clients to see."""
    max_request_seconds: float
    """How long a request may compute before a job goes on with its work."""
    max_wait_seconds: float
    """How long a client may ask for instead."""
    admission: Admission
    maps: Maps
    datasets: Datasets
    recommendations: Recommendations
    measurements: Measurements
    jobs: Jobs
    status: Status
    shutdown: Shutdown


async def _context(request: Request) -> Context:
    return cast(Context, request.app.state.context)


ContextOf = Annotated[Context, Depends(_context)]
MapName = Annotated[str, Path(pattern=NAME_PATTERN, description="Name of a map.")]
DatasetName = Annotated[str, Path(pattern=NAME_PATTERN, description="Name of a dataset.")]
