"""Work that ends after some checkpoints, as when its process is killed, and goes on from the last one."""

from collections.abc import Callable

from app.core.progress import Progress


class Interrupted(Exception):
    """The end of a process."""


class WatchedWork(Progress):
    """Keeps all it is told, goes on from a state, and may end the work after some checkpoints."""

    def __init__(self, state: bytes | None = None, most: int | None = None) -> None:
        self.states: list[bytes] = []
        self.told: list[tuple[int, int, float | None]] = []
        self._state, self._most = state, most

    def report(self, step: int, of: int, objective: float | None = None) -> None:
        self.told.append((step, of, objective))

    def checkpoint(self, make_state: Callable[[], bytes]) -> None:
        self.states.append(make_state())
        if len(self.states) == self._most:
            raise Interrupted

    def restore(self) -> bytes | None:
        return self._state
