-- KEYS: keys, state, trace. ARGV: id, new state. Returns 1, or 0 if there is no such key.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return redis.call('GET', KEYS[3]) == ARGV[2] and 1 or 0 end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('SET', KEYS[3], ARGV[2], 'EX', RECEIPT_SECONDS)
return 1
