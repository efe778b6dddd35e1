"""The keys of the store, as one process knows them."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

from app.store.keys import Key, Keys, id_in

# How long a key that was revoked by another process may still let somebody in.
_FRESH_SECONDS = 0.5
# Between two looks at the store, however many unknown keys come.
_PAUSE_SECONDS = 0.02


class KnownKeys:
    """Finds keys by their text, without a question to the store for each request.

    The keys are looked at anew when they were looked at half a second ago, and for a key that is not among them, as it
    may have been made just now. Who asks meanwhile shares the answer, so that guesses cost the store next to nothing.
    """

    def __init__(self, changed: Callable[[Keys], Awaitable[Keys]]) -> None:
        self._changed = changed
        self._keys = Keys({}, None)
        self._as_of = -math.inf
        self._coming: asyncio.Task[None] | None = None

    async def find(self, text: bytes) -> Key | None:
        """The key whose text this is; None if it is of none. StoreUnavailable where the store does not answer."""
        key_id = id_in(text)
        if key_id is None:
            return None
        came = time.monotonic()
        found = await self.get(key_id)
        if found is None:
            await self._look(came)
            found = self._keys.by_id.get(key_id)
        return found if found is not None and found.opens_with(text) else None

    async def get(self, key_id: str) -> Key | None:
        """The key with an id; None if there is none, or was none half a second ago."""
        await self._look(time.monotonic() - _FRESH_SECONDS)
        return self._keys.by_id.get(key_id)

    def forget(self) -> None:
        """Look again at the next question, as this process has changed something."""
        self._as_of = -math.inf

    async def _look(self, not_before: float) -> None:
        """Know the keys as they are at that moment or later."""
        while self._as_of < not_before:
            if self._coming is None:
                self._coming = asyncio.create_task(self._ask())
            await asyncio.shield(self._coming)  # who leaves takes it from nobody

    async def _ask(self) -> None:
        try:
            await asyncio.sleep(max(0.0, self._as_of + _PAUSE_SECONDS - time.monotonic()))
            began = time.monotonic()
            self._keys = await self._changed(self._keys)
            self._as_of = began
        finally:
            self._coming = None
