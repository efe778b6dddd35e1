-- KEYS: manifest. ARGV: token, bytes of tag hash and codes, ids. Returns tag hash and codes of each of these ids, nil for
-- each that does not exist; nil if the index is gone.
if not is_there() then return false end
local found, stride = {}, tonumber(ARGV[2])
for i = 3, #ARGV do
  local slot = tonumber(redis.call('HGET', bucket_of(ARGV[i]), ARGV[i]))
  local start = (slot or 0) % BLOCK * stride
  local key = at('codes.' .. math.floor((slot or 0) / BLOCK))
  found[i - 2] = slot and redis.call('GETRANGE', key, start, start + stride - 1) or false
end
return found
