-- KEYS: manifest. ARGV: token, bytes of mark and codes, id after which the page begins ('' for the first), most vectors.
-- Returns id, mark, and tags of each vector of the page, as `rows` does: by the bucket of the id, then by the
-- id; nil if the index is gone.
if not is_there() then return false end
local found, stride, after, most = {}, tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local first = after == '' and 0 or tonumber(string.sub(redis.sha1hex(after), 1, 3), 16)
for bucket = first, 4095 do
  local ids, slots, read = {}, {}, redis.call('HGETALL', at(string.format('slots.%03x', bucket)))
  for i = 1, #read, 2 do
    if bucket > first or after == '' or read[i] > after then table.insert(ids, read[i]) end
    slots[read[i]] = tonumber(read[i + 1])
  end
  table.sort(ids)
  for _, id in ipairs(ids) do
    if #found >= 3 * most then return found end
    for _, part in ipairs({id, row_at(slots[id], stride, MARK)}) do table.insert(found, part) end
  end
end
return found
