-- KEYS: index, manifests. ARGV: the names of the manifests. A name that was created again meanwhile stays.
for i = 2, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then redis.call('ZREM', KEYS[1], ARGV[i - 1]) end
end
