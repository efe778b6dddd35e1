-- KEYS: manifest, pins. ARGV: token of the manifest, user. Returns 0 if the thing does not exist.
local _, found = manifest(KEYS[1])
if found.token ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], math.floor(now()))
return 1
