"""Clients that read answers: the memory of all that is being sent, and who makes room for others."""

import logging
import time
from collections.abc import Callable
from math import inf

logger = logging.getLogger(__name__)

HELD = "answer_bytes"
"""In the state of a request: the memory that its answer takes while it is sent, where that is not its length."""
# Seconds that a client may take for a piece where others would be refused for want of its memory.
_SLOW_SECONDS = 1.0


class NoRoom(Exception):
    """Answers that are being sent take all memory there is for them."""


class Reader:
    """A client that reads an answer, which takes so much memory; `abort` breaks its connection off."""

    def __init__(self, nbytes: int, abort: Callable[[], None] | None) -> None:
        self.nbytes, self.abort = nbytes, abort
        self.waited_for_since = inf
        """The moment from which on the next piece waits for it to read the one before; infinity while none does."""

    @property
    def is_in_the_way(self) -> bool:
        """Whether it reads so slowly that it is to make room for others."""
        return self.abort is not None and time.monotonic() - self.waited_for_since > _SLOW_SECONDS


class Readers:
    """The clients that read long answers, and the memory of these answers.

    Args:
        max_answers_bytes: bytes of answers that may be in memory. A single one may always be.
    """

    def __init__(self, max_answers_bytes: int) -> None:
        self._there: dict[Reader, None] = {}
        self.most = self._free = max_answers_bytes

    @property
    def taken(self) -> int:
        """Bytes of answers that are in memory."""
        return self.most - self._free

    def enter(self, reader: Reader) -> None:
        """Count an answer; NoRoom if there is no memory for it, and nobody makes room."""
        while reader.nbytes > self._free and self._there:
            slow = [one for one in self._there if one.is_in_the_way]
            if not slow:
                raise NoRoom(f"the answers that are being sent take {self.most - self._free} bytes")
            self._give_up(min(slow, key=lambda one: one.waited_for_since))
        self._there[reader] = None
        self._free -= reader.nbytes

    def leave(self, reader: Reader) -> None:
        """Give its memory back. Nothing happens if it has been given up."""
        if reader in self._there:
            del self._there[reader]
            self._free += reader.nbytes

    def _give_up(self, reader: Reader) -> None:
        logger.warning("a client that reads %d bytes slowly makes room for others", reader.nbytes)
        self.leave(reader)
        if reader.abort is not None:
            reader.abort()
