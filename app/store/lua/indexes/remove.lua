-- KEYS: manifest. ARGV: token, bytes of mark and codes, whether vectors are kept, id, receipt, owner who removes it.
-- Returns 1 if this call, or the first try of it, has deleted the vector, 0 if there is none, nil if the index is gone.
if not is_there() then return false end
local receipts = redis.call('GET', at('receipts')) or ''
if string.find(receipts, ARGV[5], 1, true) then return 1 end
local id, stride, size = ARGV[4], tonumber(ARGV[2]), state('size')
local slot = tonumber(redis.call('HGET', bucket_of(id), id))
if not slot then return 0 end
local function keep_ids(block, found)
  local written = {}
  for i, one in ipairs(found) do written[i] = struct.pack('<I2c0', #one, one) end
  redis.call('SET', touch(at('ids.' .. block)), table.concat(written))
end
local last = size - 1
local block, place, from, of = math.floor(slot / BLOCK), slot % BLOCK, math.floor(last / BLOCK), last % BLOCK
local of_vector = ARGV[3] == '1' and redis.call('HSTRLEN', at('vectors.' .. block), place)
local gone = bytes_beside(id, of_vector) + bytes_of_blocks(size, stride) - bytes_of_blocks(last, stride)
local of_ids = bytes_of_ids() - 2 - #id
local mark = redis.call('GETRANGE', at('codes.' .. block), place * stride, place * stride + MARK - 1)
local tags, of_tags, in_memory = counted({[mark] = -1}, {})
gone = gone - of_tags
redis.call('HDEL', bucket_of(id), id)
if redis.call('EXISTS', bucket_of(id)) == 0 then gone = gone + KEY + #bucket_of(id) end
local of_last = ids_of(from)
local moved = of_last[of + 1]
of_last[of + 1] = nil
if slot ~= last then
  local row = redis.call('GETRANGE', at('codes.' .. from), of * stride, (of + 1) * stride - 1)
  redis.call('SETRANGE', touch(at('codes.' .. block)), place * stride, row)
  redis.call('HSET', touch(bucket_of(moved)), moved, slot)
  if ARGV[3] == '1' then
    redis.call('HSET', touch(at('vectors.' .. block)), place, redis.call('HGET', at('vectors.' .. from), of))
  end
  local here = block == from and of_last or ids_of(block)
  here[place + 1] = moved
  if block ~= from then keep_ids(block, here) end
end
if ARGV[3] == '1' then redis.call('HDEL', at('vectors.' .. from), of) end
if of == 0 then
  redis.call('DEL', at('codes.' .. from), at('ids.' .. from))
  local revisions = redis.call('GETRANGE', at('revisions'), 0, 4 * from - 1)
  if from == 0 then redis.call('DEL', at('revisions')) else redis.call('SET', touch(at('revisions')), revisions) end
else
  redis.call('SETRANGE', touch(at('codes.' .. from)), of * stride, string.rep('\0', stride))
  keep_ids(from, of_last)
end
receipts = string.sub(receipts .. ARGV[5], -128 * 8)  -- the latest 128
redis.call('SET', at('receipts'), receipts, 'EX', RECEIPT_SECONDS)
write_tags(tags, in_memory)
changed({[block] = true, [from] = true}, last, math.max(0, state('bytes') - gone), of_ids, ARGV[6], -gone)
return 1
