-- KEYS: manifest. ARGV: token, ids. Returns the vectors with these ids, nil for each that does not exist; nil if the
-- index is gone.
if not is_there() then return false end
local found = {}
for i = 2, #ARGV do
  local slot = tonumber(redis.call('HGET', bucket_of(ARGV[i]), ARGV[i]))
  found[i - 1] = slot and redis.call('HGET', at('vectors.' .. math.floor(slot / BLOCK)), slot % BLOCK) or false
end
return found
