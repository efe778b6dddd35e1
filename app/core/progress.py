"""Long-running work: reports of progress, states to resume from, and deadlines."""

import io
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

Part = TypeVar("Part")
Pause = Callable[[], None]
"""Function that is called between steps of long-running work; it may raise to end the work."""

_NOTHING_DONE = orjson.dumps({"finished": {}, "begun": ""})


class Progress:
    """Observer of long-running work, and store of the states to resume it from. This base class does nothing.

    Code that runs work in a request or in a job derives from it. Work that is resumed from any state passed to
    `checkpoint` yields the same result as without the interruption, bit for bit.
    """

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        """Report that `step` of the `of` steps are done, and the current value of the objective if one is minimised."""

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """Store the state to resume from, if it is time to.

        Call it between steps of at most a quarter of a second. Most calls do nothing. It may raise to end the work.
        `make_state` is called before this method returns, or not at all.
        """

    def save(self, make_state: Callable[[], bytes]) -> None:
        """Store the state to resume from, now: what is done next must not be done again from an earlier state."""

    def confirm(self) -> None:
        """Raise to end the work if it is not this attempt's any more. Call it before a write that is for others."""

    def before_long_call(self, make_state: Callable[[], bytes]) -> None:
        """Store the state to resume from, before a single call that may take more than a second.

        Such a call of a library cannot be interrupted: work with a deadline must not begin it.
        """
        self.checkpoint(make_state)

    def restore(self) -> bytes | None:
        """Return the state that an earlier attempt at the same work has left; None to start from the beginning."""
        return None


class OutOfTime(Exception):
    """Raised when work has exceeded its deadline; the work can be resumed elsewhere.

    The resumed work gets `state` from `Progress.restore`. The other attributes are those of the last report, or 0, 0,
    None.
    """

    def __init__(self, state: bytes, step: int, of: int, objective: float | None) -> None:
        super().__init__("the time for this work is over")
        self.state, self.step, self.of, self.objective = state, step, of, objective


class Abandoned(Exception):
    """Raised when no client waits for the work any more."""


class TimedProgress(Progress):
    """Progress of work with a deadline, which is ended at the first checkpoint after the deadline.

    Args:
        ends_at: the deadline, on the clock of `time.monotonic`.
        is_hurried: returns whether the work must end before the deadline.
    """

    def __init__(self, ends_at: float, is_hurried: Callable[[], bool] = lambda: False) -> None:
        self.abandoned = False
        """Whether no client waits for the work any more; set by another thread."""
        self._ends_at = ends_at
        self._is_hurried = is_hurried
        self._last: tuple[int, int, float | None] = 0, 0, None

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        """Remember the last report."""
        self._last = step, of, objective

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """Raise OutOfTime if the deadline is exceeded, or Abandoned if no client waits for the work."""
        if self.abandoned:
            raise Abandoned
        if self._is_hurried() or time.monotonic() >= self._ends_at:
            raise OutOfTime(make_state(), *self._last)

    def before_long_call(self, make_state: Callable[[], bytes]) -> None:
        """Raise OutOfTime, as the call may exceed the deadline, or Abandoned if no client waits for the work."""
        if self.abandoned:
            raise Abandoned
        raise OutOfTime(make_state(), *self._last)


class Inner(Progress):
    """Progress of a part of some work: the part's states are stored within the states of the whole work.

    Args:
        whole: progress of the whole work.
        state: returns the state of the whole work, given a function that returns the state of the part.
        restored: the state of the part to resume from; None to begin the part.
        tell: receives the number of steps done in the part; also called at each checkpoint, as a step may take long.
    """

    def __init__(
        self,
        whole: Progress,
        state: Callable[[Callable[[], bytes]], bytes],
        restored: bytes | None = None,
        tell: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._whole, self._state, self._restored, self._tell = whole, state, restored, tell
        self._last = 0

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        """Pass on how many steps of the part are done."""
        del of, objective
        self._last = step
        self._tell(step)

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """Pass on again how many steps are done, and store the state of the whole work."""
        self._tell(self._last)
        self._whole.checkpoint(lambda: self._state(make_state))

    def before_long_call(self, make_state: Callable[[], bytes]) -> None:
        """Pass on again how many steps are done, and store the state of the whole work before a long call."""
        self._tell(self._last)
        self._whole.before_long_call(lambda: self._state(make_state))

    def restore(self) -> bytes | None:
        """Return the state of the part to resume from."""
        return self._restored


def keeping_nothing(whole: Progress, make_state: Callable[[], bytes]) -> Progress:
    """Return the progress of a step without states of its own: its checkpoints store the state of the whole work."""
    return Inner(whole, lambda _: make_state())


class Parts:
    """Results of the parts of some work; a part that an earlier attempt has finished is not computed again.

    The state of the whole work holds the results of the finished parts and the state of the part being computed.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        head, _, inner = (progress.restore() or _NOTHING_DONE).partition(b"\n")
        state = orjson.loads(head)
        self._finished = {name: orjson.dumps(result) for name, result in state["finished"].items()}
        self._begun: dict[str, bytes] = {state["begun"]: inner}

    def once(self, name: str, compute: Callable[[Progress], Any], tell: Callable[[int], None] = lambda _: None) -> Any:
        """Return the result of a part, computed at the first call and stored from then on.

        It is returned as decoded from JSON; numbers keep every bit.

        Args:
            name: name of the part.
            compute: returns arrays or what JSON can hold. It receives the progress of the part. If the work is
                interrupted, the part resumes from the last state given to that progress; from its start if that state
                is empty.
            tell: receives the number of steps done in the part, as for `Inner`.
        """
        if name not in self._finished:
            inside = Inner(
                self._progress, lambda inner: self._state(name, inner()), self._begun.get(name) or None, tell
            )
            self._finished[name] = orjson.dumps(compute(inside), option=orjson.OPT_SERIALIZE_NUMPY)
            self._progress.checkpoint(self._state)
        return orjson.loads(self._finished[name])

    def restored_state(self) -> bytes:
        """Return the state that an earlier attempt has left, to keep until a part is resumed; else the current one."""
        return self._progress.restore() or self._state()

    def _state(self, begun: str = "", inner: bytes = b"") -> bytes:
        """Return the state of the whole work: results of finished parts, and the state of the part being computed."""
        finished = {name: orjson.Fragment(result) for name, result in self._finished.items()}
        return orjson.dumps({"finished": finished, "begun": begun}) + b"\n" + inner


def no_pause() -> None:
    """Do nothing: the work is not observed."""


def between(parts: Iterable[Part], pause: Pause) -> Iterator[Part]:
    """Yield the parts of some work, calling `pause` between every two; work on a part is not interrupted."""
    rest = iter(parts)
    yield from islice(rest, 1)
    for part in rest:
        pause()
        yield part


def begin_anew() -> bytes:
    """Return the state of work that keeps no state: empty."""
    return b""


def state_before(progress: Progress) -> bytes:
    """Return the state that an earlier attempt has left, for work that has none of its own yet; or that of none."""
    return progress.restore() or begin_anew()


def pause_of(progress: Progress) -> Pause:
    """Return a pause of work that has no state yet: the state that an earlier attempt has left is kept."""
    return partial(progress.checkpoint, partial(state_before, progress))


def pack_arrays(**arrays: NDArray[Any]) -> bytes:
    """Return arrays packed into a state to resume from."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpack_arrays(state: bytes | None) -> dict[str, NDArray[Any]]:
    """Return the arrays of a state; an empty dict if there is no state or it is empty."""
    if not state:
        return {}
    with np.load(io.BytesIO(state), allow_pickle=False) as arrays:
        return dict(arrays.items())
