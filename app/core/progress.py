"""Long work: how it tells of its progress, leaves states to go on from, and ends when its time is over."""

import io
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

Part = TypeVar("Part")
Pause = Callable[[], None]
"""Called between steps of long work. It may raise to end the work."""

_NOTHING_DONE = orjson.dumps({"finished": {}, "begun": ""})


class Progress:
    """Who watches long work, and where it leaves what it would go on from. Here nobody watches and nothing is kept.

    Whoever runs work in a request or in a job derives from it. Work that is resumed from any state it gave to
    `checkpoint` comes to the result that it would have come to undisturbed, bit for bit.
    """

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        """Hear that `step` of the `of` steps are done, and the value now of an objective, where one is minimised."""

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """Keep what is needed to go on from here, if it is time to.

        Call it between steps of at most a quarter of a second. Most calls do nothing. It may raise to end the work.
        `make_state` is called before this returns, or not at all.
        """

    def before_long_call(self, make_state: Callable[[], bytes]) -> None:
        """Keep what is needed to go on from here, before one call that may take more than a second.

        Such a call of a library cannot be interrupted: work whose time is limited must not begin it.
        """
        self.checkpoint(make_state)

    def restore(self) -> bytes | None:
        """The state to go on from that an earlier attempt at the same work has left; None to begin."""
        return None


class OutOfTime(Exception):
    """Work has used up its time, and can be gone on with elsewhere.

    Who goes on with it gets `state` from `Progress.restore`. The others were reported last; at first 0, 0, None.
    """

    def __init__(self, state: bytes, step: int, of: int, objective: float | None) -> None:
        super().__init__("the time for this work is over")
        self.state, self.step, self.of, self.objective = state, step, of, objective


class Abandoned(Exception):
    """Nobody waits for this work any more."""


class TimedProgress(Progress):
    """Ends work whose time is over, at the first state that it offers then.

    Args:
        ends_at: the moment when the time is over, as `time.monotonic` tells it.
        is_hurried: whether it is over before that moment.
    """

    def __init__(self, ends_at: float, is_hurried: Callable[[], bool] = lambda: False) -> None:
        self.abandoned = False
        """Set by another thread once nobody waits for the work."""
        self._ends_at = ends_at
        self._is_hurried = is_hurried
        self._last: tuple[int, int, float | None] = 0, 0, None

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        """Remember how far the work has come."""
        self._last = step, of, objective

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """End the work by OutOfTime if the moment has come, by Abandoned if nobody waits."""
        if self.abandoned:
            raise Abandoned
        if self._is_hurried() or time.monotonic() >= self._ends_at:
            raise OutOfTime(make_state(), *self._last)

    def before_long_call(self, make_state: Callable[[], bytes]) -> None:
        """End the work by OutOfTime: the call may take longer than there is time. By Abandoned if nobody waits."""
        if self.abandoned:
            raise Abandoned
        raise OutOfTime(make_state(), *self._last)


class Inner(Progress):
    """Progress of a part of some work: its states are kept in those of the whole, and it tells only what it is to.

    Args:
        whole: progress of the whole work.
        state: takes what gives the state of the part, and gives that of the whole.
        restored: the state of the part to go on from; None to begin it.
        tell: takes the steps done of the part; is called at each pause too, as a step may take long.
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
        """Tell how many steps of the part are done."""
        del of, objective
        self._last = step
        self._tell(step)

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        """Tell once more how far the part has come, and keep the state of the whole."""
        self._tell(self._last)
        self._whole.checkpoint(lambda: self._state(make_state))

    def before_long_call(self, make_state: Callable[[], bytes]) -> None:
        """Tell once more how far the part has come, and keep the state of the whole before a long call in the part."""
        self._tell(self._last)
        self._whole.before_long_call(lambda: self._state(make_state))

    def restore(self) -> bytes | None:
        """The state of the part."""
        return self._restored


def keeping_nothing(whole: Progress, make_state: Callable[[], bytes]) -> Progress:
    """Progress of a step that has no state of its own: where it offers one, that of the whole work is kept."""
    return Inner(whole, lambda _: make_state())


class Parts:
    """Results of the parts of some work: a part that an earlier attempt has finished is not computed again.

    The states of the whole work hold the finished parts, and that of the part that is begun.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        head, _, inner = (progress.restore() or _NOTHING_DONE).partition(b"\n")
        state = orjson.loads(head)
        self._finished = {name: orjson.dumps(result) for name, result in state["finished"].items()}
        self._begun: dict[str, bytes] = {state["begun"]: inner}

    def once(self, name: str, compute: Callable[[Progress], Any], tell: Callable[[int], None] = lambda _: None) -> Any:
        """The result of a part, as JSON gives it back; numbers keep their every bit.

        Args:
            name: of the part.
            compute: gives what JSON can hold, or arrays. It takes the progress of the part, whose states are kept until
                the part is finished; after an empty one the part is begun anew.
            tell: takes the steps done of the part, as of `Inner`.
        """
        if name not in self._finished:
            inside = Inner(
                self._progress, lambda inner: self._state(name, inner()), self._begun.get(name) or None, tell
            )
            self._finished[name] = orjson.dumps(compute(inside), option=orjson.OPT_SERIALIZE_NUMPY)
            self._progress.checkpoint(self._state)
        return orjson.loads(self._finished[name])

    def restored_state(self) -> bytes:
        """The state that an earlier attempt has left, to keep as it is until a part is gone on with."""
        return self._progress.restore() or self._state()

    def _state(self, begun: str = "", inner: bytes = b"") -> bytes:
        """The finished parts, and the state of the part that is begun."""
        finished = {name: orjson.Fragment(result) for name, result in self._finished.items()}
        return orjson.dumps({"finished": finished, "begun": begun}) + b"\n" + inner


def no_pause() -> None:
    """Go on: nobody watches."""


def between(parts: Iterable[Part], pause: Pause) -> Iterator[Part]:
    """The parts of some work, with a pause between every two: work of one part is never ended."""
    rest = iter(parts)
    yield from islice(rest, 1)
    for part in rest:
        pause()
        yield part


def begin_anew() -> bytes:
    """The state of work that keeps nothing: empty."""
    return b""


def pack_arrays(**arrays: NDArray[Any]) -> bytes:
    """Arrays as a state to go on from."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpack_arrays(state: bytes | None) -> dict[str, NDArray[Any]]:
    """The arrays of a state; none if there is none, or it is empty."""
    if not state:
        return {}
    with np.load(io.BytesIO(state), allow_pickle=False) as arrays:
        return dict(arrays.items())
