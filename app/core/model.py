"""The base of every model a client can write."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Immutable, refuses unknown fields, and takes JSON values as they are (no "7" for 7, no NaN)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
