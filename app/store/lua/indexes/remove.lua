-- KEYS: manifest. ARGV: token, bytes of mark and codes, whether vectors are kept, receipt, revision that the index must
-- have ('' for any); then for each vector its id, and the mark of the tags that it must have ('' for any). Returns for
-- each 1 if this call, or the first try of it, has deleted it, 0 if there is none, or none with these tags; nothing if
-- the revision is another; nil if the index is gone.
if not is_there() then return false end
local stride, size, before, is_kept = tonumber(ARGV[2]), state('size'), state('size'), ARGV[3] == '1'
local found, blocks, missing = {}, {}, at('missing.' .. ARGV[4])
if is_repeated(ARGV[4]) then
  local told = redis.call('GET', missing)
  for i = 6, #ARGV, 2 do table.insert(found, told and tonumber(string.sub(told, #found + 1, #found + 1)) or 1) end
  return found
end
if ARGV[5] ~= '' and state('revision') ~= tonumber(ARGV[5]) then return {} end
local function keep_ids(block, ids)
  local written = {}
  for i, one in ipairs(ids) do written[i] = struct.pack('<I2c0', #one, one) end
  redis.call('SET', touch(at('ids.' .. block)), table.concat(written))
end
local of_ids, gone, freed, of_putters = bytes_of_ids(), 0, {}, {}
local function remove(id, wanted)
  local bucket = bucket_of(id)
  local slot = tonumber(redis.call('HGET', bucket, id))
  if not slot then return 0 end
  local last = size - 1
  local block, place, from, of = math.floor(slot / BLOCK), slot % BLOCK, math.floor(last / BLOCK), last % BLOCK
  local mark = redis.call('GETRANGE', at('codes.' .. block), place * stride, place * stride + MARK - 1)
  if wanted ~= '' and mark ~= wanted then return 0 end
  local beside, by = bytes_beside(id, is_kept and redis.call('HSTRLEN', at('vectors.' .. block), place)), putter(slot)
  gone, of_putters[by] = gone + beside, (of_putters[by] or 0) - stride - beside
  of_ids, freed[mark] = of_ids - 2 - #id, (freed[mark] or 0) - 1
  redis.call('HDEL', bucket, id)
  if redis.call('EXISTS', bucket) == 0 then gone = gone + KEY + #bucket end
  local of_last = ids_of(from)
  local moved = of_last[of + 1]
  of_last[of + 1] = nil
  if slot ~= last then
    local row = redis.call('GETRANGE', at('codes.' .. from), of * stride, (of + 1) * stride - 1)
    redis.call('SETRANGE', touch(at('codes.' .. block)), place * stride, row)
    redis.call('HSET', touch(bucket_of(moved)), moved, slot)
    set_putter(slot, putter(last))
    if is_kept then
      redis.call('HSET', touch(at('vectors.' .. block)), place, redis.call('HGET', at('vectors.' .. from), of))
    end
    local here = block == from and of_last or ids_of(block)
    here[place + 1] = moved
    if block ~= from then keep_ids(block, here) end
  end
  if is_kept then redis.call('HDEL', at('vectors.' .. from), of) end
  if of == 0 then
    redis.call('DEL', at('codes.' .. from), at('ids.' .. from), at('by.' .. from))
  else
    redis.call('SETRANGE', touch(at('codes.' .. from)), of * stride, string.rep('\0', stride))
    keep_ids(from, of_last)
  end
  blocks[block], blocks[from], size = true, true, last
  return 1
end
for i = 6, #ARGV, 2 do table.insert(found, remove(ARGV[i], ARGV[i + 1])) end
if size == before then return found end
local revisions = redis.call('GETRANGE', at('revisions'), 0, 4 * n_blocks(size) - 1)
if size == 0 then redis.call('DEL', at('revisions')) else redis.call('SET', touch(at('revisions')), revisions) end
keep(ARGV[4])
if before - size < #found then redis.call('SET', missing, table.concat(found), 'EX', RECEIPT_SECONDS) end
local tags, _, of_tags, in_memory, more = counted(freed, {})
write_tags(tags, in_memory, 0)
for by, bytes in pairs(more) do of_putters[by] = (of_putters[by] or 0) + bytes end
gone = gone - of_tags + bytes_of_blocks(before, stride) - bytes_of_blocks(size, stride)
changed(blocks, size, math.max(0, state('bytes') - gone), of_ids, of_putters)
return found
