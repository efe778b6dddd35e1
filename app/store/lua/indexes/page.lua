-- KEYS: manifest. ARGV: token, bytes of mark and codes, slot before which the page begins ('' for the last), most vectors,
-- most bytes of tags. Returns the slot that the page ends with, then id, mark and tags of each vector of the page, from
-- higher to lower slots: at least one, and more while those before it have fewer bytes of tags; nil if the index is gone.
if not is_there() then return false end
local stride, size, left = tonumber(ARGV[2]), state('size'), tonumber(ARGV[5])
local slot, found, ids, of = math.min(tonumber(ARGV[3]) or size, size), {0}, {}, nil
while slot > 0 and #found < 3 * ARGV[4] and left > 0 do
  slot = slot - 1
  local block = math.floor(slot / BLOCK)
  if block ~= of then ids, of = ids_of(block), block end
  local mark, tags = row_at(slot, stride, MARK, true)
  left = left - (tags and #tags or 0)
  for _, part in ipairs({ids[slot % BLOCK + 1], mark, tags}) do table.insert(found, part) end
end
found[1] = slot
return found
