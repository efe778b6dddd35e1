-- KEYS: manifest. ARGV: token, bytes of mark and codes, whether tags are wanted ('1', ''), ids. Returns for each of these
-- ids its mark and codes, and how many vectors have its tags with the text of these tags, nil for what does not exist or is
-- not wanted; nil if the index is gone.
if not is_there() then return false end
local found, stride = {}, tonumber(ARGV[2])
for i = 4, #ARGV do
  local row, tags = row_at(tonumber(redis.call('HGET', bucket_of(ARGV[i]), ARGV[i])), stride, stride, ARGV[3] == '1')
  table.insert(found, row)
  table.insert(found, tags)
end
return found
