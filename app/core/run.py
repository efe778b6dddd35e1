"""What long work can say and keep while it runs."""

from typing import Protocol


class Run(Protocol):
    """Somebody who watches long work, keeps its state, and may call it again with that after it was killed.

    Work that goes on from what `restored` gives must end with the same result as if it had never been disturbed.
    """

    def progress(self, step: int, of: int, objective: float | None = None) -> None:
        """Say that `step` of `of` steps are done, and the value of what is being minimised, if anything is."""

    @property
    def checkpoint_due(self) -> bool:
        """Whether `checkpoint` would keep what it is given now."""

    def checkpoint(self, state: bytes) -> None:
        """Keep what is needed to go on from here; most calls do nothing, so call it after every step."""

    def restored(self) -> bytes | None:
        """What was kept last; None at the first attempt."""


class Alone:
    """A `Run` that nobody watches and that keeps nothing."""

    checkpoint_due = False

    def progress(self, step: int, of: int, objective: float | None = None) -> None:
        """Nothing."""

    def checkpoint(self, state: bytes) -> None:
        """Nothing."""

    def restored(self) -> bytes | None:
        """None."""
        return None
