"""How often a key may ask: one count in the store for all processes."""

from typing import NamedTuple, cast

import redis.asyncio

from app.store.errors import store_errors

# A bucket that fills with `rate` requests a second up to `burst`. One that is full again is not kept, and a
# refusal writes nothing.
# KEYS: bucket. ARGV: rate, burst, wanted. Gives how many may come now, and milliseconds until there is one more.
_TAKE = """
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] + time[2] / 1e6
local left = burst
local kept = redis.call('GET', KEYS[1])
if kept then
  local had, at = string.match(kept, '(%S+) (%S+)')
  left = math.min(burst, had + math.max(0, now - at) * rate)
end
local taken = math.min(tonumber(ARGV[3]), math.floor(left))
left = left - taken
if taken > 0 then
  redis.call('SET', KEYS[1], string.format('%.6f %.6f', left, now), 'PX', math.ceil((burst - left) / rate * 1000))
end
return {taken, math.ceil(math.max(0, 1 - left) / rate * 1000)}
"""


class Taken(NamedTuple):
    """How many requests may come now, and seconds until there may be one more."""

    requests: int
    wait: float


class RateStore:
    """Takes requests out of the buckets of keys; for the event loop of its client."""

    def __init__(self, client: redis.asyncio.Redis) -> None:
        self._take = client.register_script(_TAKE)

    async def take(self, key_id: str, rate: float, burst: int, wanted: int) -> Taken:
        """Take up to `wanted` requests; StoreUnavailable where the store does not answer."""
        with store_errors():
            taken = await self._take(keys=[f"bochner:rate:{key_id}"], args=[rate, burst, wanted])
        requests, milliseconds = cast(list[int], taken)
        return Taken(requests, milliseconds / 1000)
