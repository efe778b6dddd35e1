-- KEYS: manifest. ARGV: token, most bytes, ids. Returns the vectors with the first of these ids, nil for each that does
-- not exist: at least one, and as many as have that many bytes together; nil if the index is gone.
if not is_there() then return false end
local found, bytes = {}, 0
for i = 3, #ARGV do
  local slot = tonumber(redis.call('HGET', bucket_of(ARGV[i]), ARGV[i]))
  local key, place = at('vectors.' .. math.floor((slot or 0) / BLOCK)), (slot or 0) % BLOCK
  bytes = bytes + (slot and redis.call('HSTRLEN', key, place) or 0)
  if i > 3 and bytes > tonumber(ARGV[2]) then break end
  found[i - 2] = slot and redis.call('HGET', key, place) or false
end
return found
