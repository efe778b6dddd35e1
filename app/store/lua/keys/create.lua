-- KEYS: keys, state, trace. ARGV: id, record, new state, most keys. Returns 1, or 0 if there are too many keys.
if redis.call('EXISTS', KEYS[3]) == 1 then return 1 end
if redis.call('HGET', KEYS[1], ARGV[1]) == false and #redis.call('HGETALL', KEYS[1]) >= 2 * ARGV[4] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('SET', KEYS[2], ARGV[3])
return 1
