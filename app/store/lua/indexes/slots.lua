-- KEYS: manifest. ARGV: token, then ids. Returns the slot of each, -1 for an id without a vector; nil if the index is gone.
if not is_there() then return false end
local found = {}
for i = 2, #ARGV do found[i - 1] = tonumber(redis.call('HGET', bucket_of(ARGV[i]), ARGV[i]) or -1) end
return found
