"""What long work may ask of the world around it: somebody who watches, and a place for what it would go on from."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray


class Progress:
    """The surroundings of long work, here those of plain use: nobody who watches, nothing to resume.

    Whoever runs work in the background derives from it. Work that is resumed from any state it gave to `checkpoint`
    comes to the result that it would have come to undisturbed, bit for bit.
    """

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        """`step` of the `of` steps are done; the objective there, where one is minimised. May raise to end it all."""

    def checkpoint(self, state: Callable[[], bytes]) -> None:
        """What makes all that is needed to go on from here.

        Called often: when it is time, the state is made, before this returns, and kept.
        """

    def restored(self) -> bytes | None:
        """The state of an earlier attempt at the same work to go on from, None to begin."""
        return None


class Parts:
    """Results of the parts of some work, of which only those are computed that no earlier attempt has.

    Args:
        progress: the surroundings; the parts are all that is checkpointed.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        state = progress.restored()
        kept: dict[str, Any] = {} if state is None else orjson.loads(state)
        self._kept = {name: orjson.dumps(result) for name, result in kept.items()}

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """The result of a part, as JSON gives it back; numbers keep their every bit.

        Args:
            name: of the part.
            compute: gives what JSON can hold, or arrays.
        """
        if name not in self._kept:
            self._kept[name] = orjson.dumps(compute(), option=orjson.OPT_SERIALIZE_NUMPY)
            self._progress.checkpoint(self._state)
        return orjson.loads(self._kept[name])

    def _state(self) -> bytes:
        return orjson.dumps({name: orjson.Fragment(result) for name, result in self._kept.items()})


def packed(**arrays: NDArray[Any]) -> bytes:
    """Arrays as a state to go on from."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpacked(state: bytes | None) -> dict[str, NDArray[Any]]:
    """The arrays of a state; none if there is none."""
    if state is None:
        return {}
    with np.load(io.BytesIO(state), allow_pickle=False) as arrays:
        return dict(arrays.items())
