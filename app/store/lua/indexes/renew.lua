-- KEYS: manifest. ARGV: token, the current manifest, the new manifest, time to live in seconds from now on ('' for
-- ever). Returns 0 if another manifest is stored, 2 if the index must live for ever because it is pinned, else 1. If the
-- new manifest no longer has a job, the index starts empty.
local stored, found = manifest(KEYS[1])
if stored ~= ARGV[2] then return stored == ARGV[3] and 1 or 0 end
if ARGV[4] ~= '' and is_pinned() then return 2 end
if found.job and not cjson.decode(ARGV[3]).job then
  begin()
  book(own, base(), 1, owner())
end
if ARGV[4] == '' then redis.call('SET', KEYS[1], ARGV[3]) else redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[4]) end
with_all_keys(function(some)
  for _, key in ipairs(some) do
    if ARGV[4] == '' then redis.call('PERSIST', key) else redis.call('EXPIRE', key, ARGV[4] + 1) end
  end
end)
with_all_entries(function(entry) lives(entry, ARGV[4]) end)
return 1
