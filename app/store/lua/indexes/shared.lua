-- KEYS: manifest. ARGV: token.
local own = entry_at(KEYS[1], ARGV[1])
local function at(part) return own .. ':' .. part end
local function is_there()
  local _, found = manifest(KEYS[1])
  return found.token == ARGV[1]
end
local function state(field) return tonumber(redis.call('HGET', at('state'), field) or 0) end
local function bucket_of(id) return at('slots.' .. string.sub(redis.sha1hex(id), 1, 3)) end
local function n_blocks(size) return math.ceil(size / BLOCK) end
-- The bytes of the blocks of so many vectors, which have their full length from the start.
local function bytes_of_blocks(size, stride) return n_blocks(size) * BLOCK * stride end
-- The bytes that the store takes for a vector beside its codes: its id twice, its slot, and the vector if it is kept.
local function bytes_beside(id, vector_bytes) return 2 * #id + ENTRY + (vector_bytes and ENTRY + vector_bytes or 0) end
-- The bytes of all ids and of their lengths. They are counted anew after a change by an earlier version, which did not.
local function bytes_of_ids()
  local found, of, now = unpack(redis.call('HMGET', at('state'), 'ids', 'ids_at', 'revision'))
  if found and of == now then return tonumber(found) end
  found = 0
  for block = 0, n_blocks(state('size')) - 1 do found = found + redis.call('STRLEN', at('ids.' .. block)) end
  return found
end
local function ids_of(block)
  local text, found, i = redis.call('GET', at('ids.' .. block)), {}, 1
  while i <= #text do found[#found + 1], i = struct.unpack('<I2c0', text, i) end
  return found
end
-- The first bytes of the mark and codes of a slot, and the tags of its mark if they are wanted; false for what does not
-- exist.
local function row_at(slot, stride, most, is_tagged)
  if not slot then return false, false end
  local start = slot % BLOCK * stride
  local row = redis.call('GETRANGE', at('codes.' .. math.floor(slot / BLOCK)), start, start + most - 1)
  return row, is_tagged and redis.call('HGET', at('tags'), string.sub(row, 1, MARK))
end
-- What is written by this script lives as long as the manifest, and a second longer: a manifest has all its keys.
local touched = {}
local function touch(key) touched[key] = true return key end
-- Which sets of tags are written if so many vectors more have each, given their texts by their marks: what `tags` has for
-- each mark from then on, false for nothing, and by how many bytes that is more: those of new sets, in all, in the memory
-- of a process, and of those that have put sets in, by their numbers. No tags at all are not written.
local function counted(changes, texts)
  local found, new, grown, sets, of_putters = {}, 0, 0, 0, {}
  for mark, more in pairs(changes) do
    local there = more ~= 0 and redis.call('HGET', at('tags'), mark)
    local text = there and string.sub(there, 5) or texts[mark]
    local n = (there and struct.unpack('<I4', there) or 0) + more
    if more ~= 0 and mark ~= string.rep('\0', #mark) and text then
      found[mark] = n > 0 and struct.pack('<I4', n) .. text
      local more_bytes = (found[mark] and ENTRY + #found[mark] or 0) - (there and ENTRY + #there or 0)
      local by = there and tonumber(redis.call('HGET', at('tags_by'), mark)) or 0
      if by > 0 and not found[mark] then more_bytes = more_bytes - ENTRY end
      if there then of_putters[by] = (of_putters[by] or 0) + more_bytes else new = new + more_bytes end
      grown = grown + more_bytes
      sets = sets + (found[mark] and 1 or 0) - (there and 1 or 0)
    end
  end
  return found, new, grown, grown + SET * sets, of_putters
end
-- Writes sets of tags, the new ones as those of an owner by its number.
local function write_tags(found, in_memory, number)
  for mark, value in pairs(found) do
    if not value then
      redis.call('HDEL', at('tags'), mark)
      redis.call('HDEL', at('tags_by'), mark)
    elseif redis.call('HSET', touch(at('tags')), mark, value) == 1 then
      if number > 0 then redis.call('HSET', touch(at('tags_by')), mark, number)
      else redis.call('HDEL', at('tags_by'), mark) end
    end
  end
  if in_memory ~= 0 then redis.call('HINCRBY', at('state'), 'tags', in_memory) end
end
-- Calls a function with all keys of the index that may be there beside its manifest, some at a time.
local function with_all_keys(call)
  local some = {at('state'), at('revisions'), at('tags'), at('tags_by')}
  local function take(key)
    table.insert(some, key)
    if #some >= 500 then call(some) some = {} end
  end
  for block = 0, n_blocks(state('size')) - 1 do
    for _, part in ipairs({'codes.', 'ids.', 'vectors.', 'by.'}) do take(at(part .. block)) end
  end
  for bucket = 0, 4095 do take(at(string.format('slots.%03x', bucket))) end
  call(some)
end
local function begin() redis.call('HSET', touch(at('state')), 'size', 0, 'revision', 0, 'bytes', 0, 'ids', 0, 'ids_at', 0) end
local function live_on()
  local left = redis.call('PTTL', KEYS[1])
  if left < 0 then return end
  for key in pairs(touched) do redis.call('PEXPIRE', key, left + 1000) end
end
-- The bytes that the store takes for an index without vectors: its keys and those of its entry, with their names.
local function base() return BASE + BASE_NAMES * #own end
local function owner()
  local entry = redis.call('HGET', ENTRIES, own)
  return entry and string.match(entry, '^%d+ %d+ (.*)$') or ''
end
-- The bytes of those who have put vectors in and do not own the index.
local function shares()
  local found, read = {}, redis.call('HGETALL', at('state'))
  for i = 1, #read, 2 do
    local who = string.match(read[i], '^of (.*)$')
    if who then found[who] = tonumber(read[i + 1]) end
  end
  return found
end
local function with_all_entries(call)
  call(own)
  for who in pairs(shares()) do call(own .. ' ' .. who) end
end
-- The number of an owner in the index: 0 for that of the index, nil for one who has put nothing in.
local function number_of(who)
  return who == owner() and 0 or tonumber(redis.call('HGET', at('state'), 'number of ' .. who))
end
local function new_number(who)
  local number = redis.call('HINCRBY', at('state'), 'numbers', 1)
  redis.call('HSET', at('state'), 'number of ' .. who, number, 'number ' .. number, who)
  return number
end
-- The number of whoever has put in the vector of a slot. Blocks have two bytes for each slot, or none for zeros alone.
local function putter(slot)
  local start = slot % BLOCK * 2
  local found = redis.call('GETRANGE', at('by.' .. math.floor(slot / BLOCK)), start, start + 1)
  return #found == 2 and struct.unpack('<I2', found) or 0
end
local function set_putter(slot, number)
  local key = at('by.' .. math.floor(slot / BLOCK))
  if number == 0 and redis.call('EXISTS', key) == 0 then return end
  redis.call('SETRANGE', touch(key), slot % BLOCK * 2, struct.pack('<I2', number % 65536))
end
-- Enters the bytes of an index, given by how many those of some owners, by their numbers, have changed.
local function share_out(bytes, grown)
  local before, found, owned = shares(), shares(), bytes
  for number, by in pairs(grown) do
    local who = number > 0 and redis.call('HGET', at('state'), 'number ' .. number)
    if who then found[who] = (found[who] or 0) + by end
  end
  for other, wanted in pairs(found) do
    local field, entry = 'of ' .. other, own .. ' ' .. other
    local share = math.max(0, math.min(wanted, owned))
    owned = owned - share
    if share == before[other] then
      -- as it is already
    elseif share > 0 then
      redis.call('HSET', at('state'), field, share)
      book(entry, share, 0, other)
      lives_as(entry, KEYS[1])
    else
      redis.call('HDEL', at('state'), field)
      unbook(entry)
    end
  end
  book(own, owned + base(), 1, owner())
  lives_as(own, KEYS[1])
end
-- The latest changes, so that one that the client library repeats after a lost reply is not made again.
local function is_repeated(receipt) return string.find(redis.call('GET', at('receipts')) or '', receipt, 1, true) end
local function keep(receipt)
  local latest = string.sub((redis.call('GET', at('receipts')) or '') .. receipt, -128 * #receipt)
  redis.call('SET', at('receipts'), latest, 'EX', RECEIPT_SECONDS)
end
-- Notes a change of some blocks, what the index is from now on, and by how many bytes those of owners have grown.
local function changed(blocks, size, bytes, of_ids, grown)
  -- A store that came back as it was before must not repeat the revisions that processes have read from it.
  local revision = math.max(state('revision') + 1, math.floor(1000000 * now()))
  local written = struct.pack('<I4', revision % 4294967296)
  for block in pairs(blocks) do
    if block < n_blocks(size) then redis.call('SETRANGE', touch(at('revisions')), 4 * block, written) end
  end
  local counts = {'size', size, 'revision', revision, 'bytes', bytes, 'ids', of_ids, 'ids_at', revision}
  redis.call('HSET', touch(at('state')), unpack(counts))
  share_out(bytes, grown)
  live_on()
end
