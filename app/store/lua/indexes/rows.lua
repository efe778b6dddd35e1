-- KEYS: manifest. ARGV: token, bytes of mark and codes, ids. Returns for each of these ids its mark and codes, and how many
-- vectors have its tags with the text of these tags, nil for what does not exist; nil if the index is gone.
if not is_there() then return false end
local found, stride = {}, tonumber(ARGV[2])
for i = 3, #ARGV do
  local slot = tonumber(redis.call('HGET', bucket_of(ARGV[i]), ARGV[i]))
  for _, part in ipairs({row_at(slot, stride, stride)}) do table.insert(found, part) end
end
return found
