"""Long work: how it tells of its progress, leaves states to go on from, and ends when its time is over."""

import io
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

Pause = Callable[[], None]
"""Called between steps of long work. It may raise to end the work."""

_NOTHING_DONE = orjson.dumps({"finished": {}, "begun": ""})


class Progress:
    """Who watches long work, and where it leaves what it would go on from. Here nobody watches and nothing is kept.

    Whoever runs work in a request or in a job derives from it. Work that is resumed from any state it gave to
    `checkpoint` comes to the result that it would have come to undisturbed, bit for bit.
    """

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        """Hear that `step` of the `of` steps are done.

        Args:
            step: steps done.
            of: steps in all.
            objective: its value now, where one is minimised.
        """

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """Keep what is needed to go on from here, if it is time to.

        Call it between steps of at most a quarter of a second. Most calls do nothing. It may raise to end the work.

        Args:
            make_state: gives the state; it is called before this returns, or not at all.
        """

    def before_long_call(self, make_state: Callable[[], bytes]) -> None:
        """Keep what is needed to go on from here, before one call that may take more than a second.

        Such a call of a library cannot be interrupted: work whose time is limited must not begin it.

        Args:
            make_state: as of `checkpoint`.
        """
        self.checkpoint(make_state)

    def restored(self) -> bytes | None:
        """The state to go on from that an earlier attempt at the same work has left; None to begin."""
        return None


class OutOfTime(Exception):
    """Work has used up its time, and can be gone on with elsewhere.

    Args:
        state: what `Progress.restored` gives to who goes on with it.
        step: steps done, as the work has reported last.
        of: steps in all; 0 if it has reported nothing yet.
        objective: its value then, where one is minimised.
    """

    def __init__(self, state: bytes, step: int, of: int, objective: float | None) -> None:
        super().__init__("the time for this work is over")
        self.state, self.step, self.of, self.objective = state, step, of, objective


class Abandoned(Exception):
    """Nobody waits for this work any more."""


class TimedProgress(Progress):
    """Of work that has until a certain moment. Nothing interrupts it: it ends itself where it offers a state.

    Args:
        ends_at: the moment, as `time.monotonic` tells it.
    """

    def __init__(self, ends_at: float) -> None:
        self.abandoned = False
        """Set by another thread once nobody waits for the work."""
        self._ends_at = ends_at
        self._last: tuple[int, int, float | None] = 0, 0, None

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        """Remember how far the work has come."""
        self._last = step, of, objective

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """End the work if it is time to.

        Raises:
            OutOfTime: the moment has come.
            Abandoned: nobody waits.
        """
        if self.abandoned:
            raise Abandoned
        if time.monotonic() >= self._ends_at:
            raise OutOfTime(make_state(), *self._last)

    def before_long_call(self, make_state: Callable[[], bytes]) -> None:
        """End the work: the call may take longer than there is time.

        Raises:
            OutOfTime: always.
        """
        raise OutOfTime(make_state(), *self._last)


class Parts:
    """Results of the parts of some work: a part that an earlier attempt has finished is not computed again.

    Args:
        progress: of the whole work. Its states hold the finished parts, and that of the part that is begun.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        head, _, inner = (progress.restored() or _NOTHING_DONE).partition(b"\n")
        state = orjson.loads(head)
        self._finished = {name: orjson.dumps(result) for name, result in state["finished"].items()}
        self._begun: tuple[str, bytes] = state["begun"], inner

    def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """The result of a part, as JSON gives it back; numbers keep their every bit.

        Args:
            name: of the part.
            compute: gives what JSON can hold, or arrays.
        """
        if name not in self._finished:
            self._finished[name] = orjson.dumps(compute(), option=orjson.OPT_SERIALIZE_NUMPY)
            self._progress.checkpoint(self.state)
        return orjson.loads(self._finished[name])

    def within(self, name: str) -> Progress:
        """Progress for the inside of a part, whose states are kept until it is finished. Its reports are not told on.

        An empty state means that the part is begun anew.
        """
        return _Within(self, self._progress, name)

    def state(self, begun: str = "", inner: bytes = b"") -> bytes:
        """The finished parts, and the state of the part that is begun."""
        finished = {name: orjson.Fragment(result) for name, result in self._finished.items()}
        return orjson.dumps({"finished": finished, "begun": begun}) + b"\n" + inner

    def restored_state(self) -> bytes:
        """The state that an earlier attempt has left, to keep as it is until a part is gone on with."""
        return self._progress.restored() or self.state()

    def restored(self, name: str) -> bytes | None:
        """The state that an earlier attempt has left of a part; None to begin it."""
        begun, inner = self._begun
        return (inner or None) if begun == name else None


class _Within(Progress):
    """Progress inside of one part."""

    def __init__(self, parts: Parts, progress: Progress, name: str) -> None:
        self._parts, self._progress, self._name = parts, progress, name

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """Keep the state of the part, and the parts finished before."""
        self._progress.checkpoint(lambda: self._parts.state(self._name, make_state()))

    def before_long_call(self, make_state: Callable[[], bytes]) -> None:
        """As above, before a long call inside of the part."""
        self._progress.before_long_call(lambda: self._parts.state(self._name, make_state()))

    def restored(self) -> bytes | None:
        """The state of the part."""
        return self._parts.restored(self._name)


class Reported(Progress):
    """Progress of a part of some work that tells on how far it has come: also at each pause, as a step may take long.

    Args:
        within: of the part.
        tell: takes the steps done of the part, and how many it has.
    """

    def __init__(self, within: Progress, tell: Callable[[int, int], None]) -> None:
        self._within, self._tell = within, tell
        self._last = 0, 1

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        """Tell it on."""
        del objective
        self._last = step, of
        self._tell(step, of)

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """Tell once more how far it has come, and keep the state of the part."""
        self._tell(*self._last)
        self._within.checkpoint(make_state)

    def before_long_call(self, make_state: Callable[[], bytes]) -> None:
        """Likewise, before a long call."""
        self._tell(*self._last)
        self._within.before_long_call(make_state)

    def restored(self) -> bytes | None:
        """The state of the part."""
        return self._within.restored()


class Pausing(Progress):
    """Progress of a step that keeps nothing of its own: where it offers a state, it is that of the whole work.

    Args:
        progress: of the whole work.
        make_state: gives its state.
    """

    def __init__(self, progress: Progress, make_state: Callable[[], bytes]) -> None:
        self._progress, self._make_state = progress, make_state

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """Keep the state of the whole work."""
        del make_state
        self._progress.checkpoint(self._make_state)

    def before_long_call(self, make_state: Callable[[], bytes]) -> None:
        """As above, before a long call inside of the step."""
        del make_state
        self._progress.before_long_call(self._make_state)


def no_pause() -> None:
    """Go on: nobody watches."""


def begin_anew() -> bytes:
    """The state of work that keeps nothing: empty."""
    return b""


def packed(**arrays: NDArray[Any]) -> bytes:
    """Arrays as a state to go on from."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpacked(state: bytes | None) -> dict[str, NDArray[Any]]:
    """The arrays of a state; none if there is none, or it is empty."""
    if not state:
        return {}
    with np.load(io.BytesIO(state), allow_pickle=False) as arrays:
        return dict(arrays.items())
