-- KEYS: manifest. ARGV: token, bytes of mark and codes, whether vectors are kept ('1', ''), most bytes, most bytes in
-- memory ('' for no limit) and those of a vector without its id, owner who adds them, revision that the index must have
-- ('' for any), receipt, whether vectors get other tags alone, bytes of all, of that owner and of the index's owner in
-- other shards, an entry that holds the room until now ('' for none); then for each vector its id, the mark of its tags
-- with its codes, the vector itself ('' to keep what is there), and the text of its tags. Ids are distinct. Without a
-- mark before its codes, a vector keeps the tags that it has. Returns the limit that would be exceeded, 'tags' if all
-- sets of tags would take too much, or 'changed' if the revision is another; nil if the index is gone.
if not is_there() then return false end
if is_repeated(ARGV[9]) then return {''} end
if ARGV[8] ~= '' and state('revision') ~= tonumber(ARGV[8]) then return {'changed'} end
local BY, FIRST, stride, size, bytes = ARGV[7], 15, tonumber(ARGV[2]), state('size'), state('bytes')
local slots, before, n_new, of_ids = {}, size, 0, bytes_of_ids()
local grown, changes, texts, begun, is_kept = 0, {}, {}, {}, ARGV[3] == '1'
local IS_PUT = ARGV[10] == ''
-- A vector counts for whoever has put it in last: bytes of others that are replaced, by their numbers, and all of BY.
local replaced, put, number = {}, 0, number_of(BY)
for i = FIRST, #ARGV, 4 do
  local id, vector = ARGV[i], ARGV[i + 2]
  local bucket = bucket_of(id)
  local slot = tonumber(redis.call('HGET', bucket, id))
  slots[i] = slot
  if not slot then
    n_new, grown, of_ids = n_new + 1, grown + bytes_beside(id, is_kept and #vector), of_ids + 2 + #id
    put = put + stride + bytes_beside(id, is_kept and #vector)
    local is_new = not begun[bucket] and redis.call('EXISTS', bucket) == 0
    if is_new then begun[bucket], grown = true, grown + KEY + #bucket end
  elseif IS_PUT then
    local old = is_kept and redis.call('HSTRLEN', at('vectors.' .. math.floor(slot / BLOCK)), slot % BLOCK)
    local by, more = putter(slot), stride + bytes_beside(id, is_kept and #vector)
    grown, put = grown + (is_kept and #vector - old or 0), put + more
    replaced[by] = (replaced[by] or 0) - stride - bytes_beside(id, old)
  end
  if #ARGV[i + 1] == stride then
    local mark, start = string.sub(ARGV[i + 1], 1, MARK), slot and slot % BLOCK * stride
    local old = slot and redis.call('GETRANGE', at('codes.' .. math.floor(slot / BLOCK)), start, start + MARK - 1)
    if old then changes[old] = (changes[old] or 0) - 1 end
    changes[mark] = (changes[mark] or 0) + 1
    if ARGV[i + 3] ~= '' then texts[mark] = ARGV[i + 3] end
  end
end
local tags, new_tags, of_tags, in_memory, of_putters = counted(changes, texts)
-- A set of tags counts for whoever has put it in first, and with another entry if that is not the owner of the index.
if number ~= 0 then
  for mark, value in pairs(tags) do
    if value and redis.call('HEXISTS', at('tags'), mark) == 0 then
      new_tags, of_tags, in_memory = new_tags + ENTRY, of_tags + ENTRY, in_memory + ENTRY
    end
  end
end
for by, more in pairs(of_putters) do replaced[by] = (replaced[by] or 0) + more end
if in_memory > 0 and state('tags') + in_memory > MOST_TAGS then return {'tags', state('tags') + in_memory} end
grown = grown + of_tags + bytes_of_blocks(size + n_new, stride) - bytes_of_blocks(size, stride)
if ARGV[5] ~= '' and (n_new > 0 or in_memory > 0) then
  local most, wanted = tonumber(ARGV[5]), (size + n_new) * tonumber(ARGV[6]) + of_ids + state('tags') + in_memory
  if wanted > most then return {'memory', math.floor((size + n_new) * most / wanted), wanted} end
end
sweep()
unbook(ARGV[14])
put = put + new_tags + (replaced[number] or 0)
-- What is not for others, such as blocks of codes that are begun, counts for the owner of the index.
local rest = number == 0 and grown or grown - put
for by, less in pairs(replaced) do rest = rest - (by ~= 0 and by ~= number and less or 0) end
local limit = passed(BY, grown, 0, ARGV[4], '', number == 0 and rest or put, {ARGV[11], ARGV[12]})
if not limit and number ~= 0 then
  limit = passed(owner(), rest, 0, '', '', rest, {0, ARGV[13]})
  if limit then limit[1] = 'owner_bytes' end
end
if limit then return limit end
number = number or new_number(BY)
replaced[number] = put
local blocks, ids = {}, {}
for i = FIRST, #ARGV, 4 do
  local id, slot = ARGV[i], slots[i]
  if not slot then
    slot, size = size, size + 1
    redis.call('HSET', touch(bucket_of(id)), id, slot)
  end
  if IS_PUT or not slots[i] then set_putter(slot, number) end
  local block, place = math.floor(slot / BLOCK), slot % BLOCK
  local codes, row = touch(at('codes.' .. block)), ARGV[i + 1]
  if slot >= before then
    if not ids[block] then ids[block] = {} end
    table.insert(ids[block], struct.pack('<I2c0', #id, id))
    row = string.rep('\0', stride - #row) .. row
    if place == 0 then redis.call('SETRANGE', codes, BLOCK * stride - 1, '\0') end
  end
  redis.call('SETRANGE', codes, (place + 1) * stride - #row, row)
  if #ARGV[i + 2] > 0 then redis.call('HSET', touch(at('vectors.' .. block)), place, ARGV[i + 2]) end
  blocks[block] = true
end
for block, more in pairs(ids) do
  local key = touch(at('ids.' .. block))
  redis.call('SET', key, (redis.call('GET', key) or '') .. table.concat(more))
end
write_tags(tags, in_memory, number)
keep(ARGV[9])
changed(blocks, size, bytes + grown, of_ids, replaced)
return {''}
