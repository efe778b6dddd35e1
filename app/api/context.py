"""What every route works with."""

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Path, Request

from app.api.admission import Admission
from app.jobs.jobs import Jobs
from app.services.hashing import Hashing
from app.services.limits import Limits
from app.services.maps import Maps
from app.services.status import Status
from app.services.vectors import Vectors

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"


@dataclass(frozen=True)
class Context:
    """The services of one process."""

    limits: Limits
    admission: Admission
    maps: Maps
    vectors: Vectors
    hashing: Hashing
    jobs: Jobs
    status: Status


async def _context(request: Request) -> Context:
    return cast(Context, request.app.state.context)


ContextOf = Annotated[Context, Depends(_context)]
MapName = Annotated[str, Path(pattern=NAME_PATTERN, description="Name of a map.")]
