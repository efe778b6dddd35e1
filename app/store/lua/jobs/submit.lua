-- ARGV: id, '', most jobs that may wait, manifest of a reservation (or ''), its name, owner ('' for none), jobs
-- of the owner in other shards, field, value, … An owner may take no more of the queue than it leaves to others.
-- KEYS from 5: with a reservation, the key of its manifest and its listing; then all keys written for the job.
if redis.call('EXISTS', record) == 1 then return {'ok'} end
local first = 5
local stored, found
if ARGV[4] ~= '' then
  first = 7
  stored, found = manifest(KEYS[5])
  if stored and not failed(found) then return {'taken'} end
end
redis.pcall('XGROUP', 'CREATE', queue, GROUP, '0', 'MKSTREAM')
local waiting = redis.call('XLEN', queue) - redis.call('XPENDING', queue, GROUP)[1]
local left, own = tonumber(ARGV[3]) - waiting, tonumber(ARGV[7])
for _, message in ipairs(ARGV[6] ~= '' and redis.call('XRANGE', queue, '-', '+') or {}) do
  if message[2][4] == ARGV[6] then own = own + 1 end
end
if own >= left then return {'full', waiting, own} end
for i = first, #KEYS do
  if redis.call('PERSIST', KEYS[i]) == 0 and redis.call('EXISTS', KEYS[i]) == 0 then return {'expired'} end
end
if ARGV[4] ~= '' then
  drop_spec(KEYS[5], found)
  redis.call('SET', KEYS[5], ARGV[4])
  local _, held = manifest(KEYS[5])
  if held.token then lives(entry_at(KEYS[5], held.token), '') end
  redis.call('ZADD', KEYS[6], 0, ARGV[5])
  set('placeholder_key', KEYS[5], 'placeholder_index', KEYS[6], 'placeholder_member', ARGV[5])
end
set('id', id, 'format', FORMAT, 'state', 'queued', 'created', now(), unpack(ARGV, 8))
for i = first, #KEYS do
  redis.call('SADD', base .. 'keys', KEYS[i])
  lives(entry_of(KEYS[i]), '')
end
lives(record, '')
redis.call('ZADD', index, 0, id)
enqueue()
event()
return {'ok'}
