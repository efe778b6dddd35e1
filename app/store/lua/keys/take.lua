-- Token bucket that fills with `rate` requests per second up to `burst`. A bucket that is full again expires, and a
-- refusal writes nothing, unless the clock was set back since the bucket was written: it would not fill until then.
-- KEYS: bucket. ARGV: rate, burst, wanted. Returns how many requests may come now, and the milliseconds until the next.
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] + time[2] / 1e6
local left, is_ahead = burst, false
local kept = redis.call('GET', KEYS[1])
if kept then
  local had, at = string.match(kept, '(%S+) (%S+)')
  left, is_ahead = math.min(burst, had + math.max(0, now - at) * rate), tonumber(at) > now
end
local taken = math.min(tonumber(ARGV[3]), math.floor(left))
left = left - taken
if taken > 0 or is_ahead then
  redis.call('SET', KEYS[1], string.format('%.6f %.6f', left, now), 'PX', math.ceil((burst - left) / rate * 1000))
end
return {taken, math.ceil(math.max(0, 1 - left) / rate * 1000)}
