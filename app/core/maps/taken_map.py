"""A map as it is taken away in a file."""

from collections.abc import Mapping
from typing import NamedTuple

from app.core.answers import RowBlocks
from app.core.arrays import Array
from app.core.maps.terms import BaseSpec


class TakenMap(NamedTuple):
    """A map as it is taken away: what features or codes are computed from, and what tells which map it is."""

    spec: BaseSpec
    text: str
    """The spec as it is stored, in JSON."""
    digest: str
    parameter_stream: int | None
    """Version of the stream of random parameters; None where there is none."""
    arrays: Mapping[str, Array | RowBlocks]
    """The frozen arrays, and those that `derived` gives beside them. Blocks are made once."""

    @property
    def told(self) -> dict[str, str]:
        """What a file says beside its arrays."""
        stream = {} if self.parameter_stream is None else {"parameter_stream": str(self.parameter_stream)}
        return {"spec": self.text, "digest": self.digest, **stream}
