"""How version 0.1.0 reserved the name of a map."""

from typing import Any

from pydantic_core import from_json


def reservation(stored: bytes) -> dict[str, Any] | None:
    """The members of a map's manifest for what that version put under a name; None if it is something else."""
    try:
        read = from_json(stored)
    except ValueError:
        return None
    if not isinstance(read, dict) or read.pop("pending", None) != 1:
        return None
    state = "building" if read.get("error") is None else "failed"
    # It had no token; scripts know it by its job.
    return read | {"schema_version": 1, "state": state, "token": read.get("job")}
