-- KEYS: manifest, index, chunks. ARGV: manifest, name, token of the reservation to replace ('' for a free name), time to
-- live in seconds ('' for ever), own token. Returns the manifest stored then, '' for none, nil if chunks are missing. If
-- the name holds something else, the new chunks are deleted at once. If the reservation has another time to live by now,
-- its manifest is returned and the chunks stay: the caller commits again with that time.
local stored, found = manifest(KEYS[1])
local there = found.token
local free = ARGV[3] == '' and (not stored or failed(found))
if not free and (ARGV[3] == '' or there ~= ARGV[3] or failed(found)) then
  if there == ARGV[5] then return stored end
  for i = 3, #KEYS do redis.call('UNLINK', KEYS[i]) end
  unbook(entry_at(KEYS[1], ARGV[5]))
  return stored or ''
end
if not free and found.job and tostring(ttl(found)) ~= ARGV[4] then return stored end
if not are_there(3) then return false end
if found.job then drop_spec(KEYS[1], found) end
stand(ARGV[1], ARGV[4], 3)
lives(entry_at(KEYS[1], ARGV[5]), ARGV[4])
redis.call('ZADD', KEYS[2], 0, ARGV[2])
return ARGV[1]
