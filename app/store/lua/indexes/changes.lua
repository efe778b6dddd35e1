-- KEYS: manifest. ARGV: token, revisions of the blocks that the caller has, most bytes, first block to look at. Returns
-- size, revision and bytes, the revisions now, and the number, codes and ids of each block of another revision, in order:
-- at least one, and more while those before it have fewer than that many bytes together; nil if the index is gone.
if not is_there() then return false end
local revisions, left = redis.call('GET', at('revisions')) or '', tonumber(ARGV[3])
local found = {redis.call('HMGET', at('state'), 'size', 'revision', 'bytes'), revisions}
for block = tonumber(ARGV[4]), n_blocks(state('size')) - 1 do
  local first, last = 4 * block + 1, 4 * block + 4
  if string.sub(ARGV[2], first, last) ~= string.sub(revisions, first, last) then
    if left <= 0 then break end
    local codes, ids = redis.call('GET', at('codes.' .. block)) or '', redis.call('GET', at('ids.' .. block)) or ''
    left = left - #codes - #ids
    for _, part in ipairs({block, codes, ids}) do table.insert(found, part) end
  end
end
return found
