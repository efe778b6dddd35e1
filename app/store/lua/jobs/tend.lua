-- KEYS: index, queue, ended. Creates the consumer group of the workers, and removes the ids of expired jobs from the
-- lists. If the clock was set back, a message has a read time in the future and no idle time until then: claiming the
-- message restarts its idle time.
redis.pcall('XGROUP', 'CREATE', KEYS[2], GROUP, '0', 'MKSTREAM')
for _, read in ipairs(redis.call('XPENDING', KEYS[2], GROUP, '-', '+', 1000)) do
  if read[3] <= 0 then redis.call('XCLAIM', KEYS[2], GROUP, CONSUMER, 0, read[1], 'JUSTID') end
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', redis.call('TIME')[1], 'LIMIT', 0, 1000)) do
  redis.call('ZREM', KEYS[3], id)
  redis.call('ZREM', KEYS[1], id)
end
