-- KEYS: manifest. ARGV: token, revisions of the blocks that the caller has, most bytes, first block to look at, bytes of
-- mark and codes. Returns size, revision and bytes, the revisions now, marks of the vectors in the blocks that follow, each
-- with its tags, and the number, codes and ids of each block of another revision, in order: at least one, and more while
-- those before it have fewer than that many bytes together, with their tags; nil if the index is gone.
if not is_there() then return false end
local revisions, left = redis.call('GET', at('revisions')) or '', tonumber(ARGV[3])
local tags, known, stride, are_tagged = {}, {}, tonumber(ARGV[5]), redis.call('EXISTS', at('tags')) == 1
local found = {redis.call('HMGET', at('state'), 'size', 'revision', 'bytes'), revisions, tags}
for block = tonumber(ARGV[4]), n_blocks(state('size')) - 1 do
  local first, last = 4 * block + 1, 4 * block + 4
  if string.sub(ARGV[2], first, last) ~= string.sub(revisions, first, last) then
    if left <= 0 then break end
    local codes, ids = redis.call('GET', at('codes.' .. block)) or '', redis.call('GET', at('ids.' .. block)) or ''
    left = left - #codes - #ids
    for start = 1, are_tagged and #codes or 0, stride do
      local mark = string.sub(codes, start, start + MARK - 1)
      local text = not known[mark] and redis.call('HGET', at('tags'), mark)
      known[mark] = true
      if text then table.insert(tags, mark) table.insert(tags, string.sub(text, 5)) end
      left = left - PER_MARK - (text and #text or 0)
    end
    for _, part in ipairs({block, codes, ids}) do table.insert(found, part) end
  end
end
return found
