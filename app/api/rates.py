"""How often a key may ask, counted for all processes without a question to the store for each request."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from cachetools import LRUCache

from app.store.keys import Key, Taken

# Requests are taken from the store for so many seconds ahead.
_AHEAD_SECONDS = 0.1
# What was taken and not used is lost after so long.
_KEPT_SECONDS = 1.0
# Keys whose allowance is remembered. Of others it is asked for anew.
_MOST_KEYS = 4096

Take = Callable[[str, float, int, int], Awaitable[Taken]]


class _Allowance:
    """Requests of one key that one process has taken from the store and not let in yet."""

    def __init__(self) -> None:
        self.left = 0
        self.ends = 0.0
        """When what is left is lost."""
        self.refused_until = 0.0
        self.waiting = 0
        self.taking = asyncio.Lock()


class Rates:
    """Lets requests of keys in, as many as their rates allow.

    In any t seconds all processes together let burst + rate·t of a key in, and each of them at most a tenth of a
    second's more, which it had taken ahead.
    """

    def __init__(self, take: Take) -> None:
        self._take = take
        self._of: LRUCache[str, _Allowance] = LRUCache(_MOST_KEYS)

    async def wait(self, key: Key) -> float:
        """Seconds until the key may ask again; 0 if this request may come. StoreUnavailable as the store says."""
        if key.rate is None or key.burst is None:
            return 0.0
        one = self._of.get(key.id)
        if one is None:
            one = self._of[key.id] = _Allowance()
        one.waiting += 1
        try:
            async with one.taking:
                now = time.monotonic()
                if now >= one.ends:
                    one.left = 0
                if not one.left:
                    if now < one.refused_until:
                        return one.refused_until - now
                    wanted = max(int(key.rate * _AHEAD_SECONDS), one.waiting)
                    one.left, wait = await self._take(key.id, key.rate, key.burst, wanted)
                    one.ends = now + _KEPT_SECONDS
                    if not one.left:
                        one.refused_until = now + wait
                        return wait
                one.left -= 1
                return 0.0
        finally:
            one.waiting -= 1
