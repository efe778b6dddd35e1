"""What stands under the name of a map while a job builds it, or after that has failed."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError


class Pending(BaseModel):
    """A map that is not there yet; its stored bytes are what a finished map must find to take their place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pending: Literal[1] = 1
    name: str
    spec: str
    job: str
    """Id of the job."""
    created_at: datetime
    error: dict[str, Any] | None = None
    """Why the job failed; None while it has not."""

    @property
    def stored(self) -> bytes:
        """As it lies in the store."""
        return self.model_dump_json().encode()


def is_pending(stored: bytes) -> bool:
    """Whether what stands under a name is such."""
    try:
        Pending.model_validate_json(stored)
    except ValidationError:
        return False
    return True
