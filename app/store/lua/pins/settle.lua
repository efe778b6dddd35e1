-- KEYS: pins. ARGV: user. A reference that was removed meanwhile, with its user, does not come back.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then redis.call('HSET', KEYS[1], ARGV[1], 0) end
