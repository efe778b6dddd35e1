-- KEYS: manifest, listing, manifest of an alias of the other kind, to which the name may be given already. ARGV: manifest,
-- name, the alias to be replaced ('' for none), owner, bytes, most bytes, most names, an entry that holds the room until
-- now ('' for none). Returns the limit that would be exceeded, and the manifest stored then, '' for none.
local stored, found = manifest(KEYS[1])
local other, there = manifest(KEYS[3])
if there.alias_of then return {false, other} end
local made = 'made ' .. cjson.decode(ARGV[1]).token
if not stored and redis.call('EXISTS', receipt(made)) == 1 then return {false, ARGV[1]} end  -- and deleted since
local is_free = ARGV[3] == '' and (not stored or failed(found))
if not is_free and stored ~= ARGV[3] then return {false, stored or ''} end
sweep()
unbook(ARGV[8])
local entry = redis.call('HGET', ENTRIES, entry_at(KEYS[1], found.token or ''))
local is_own = entry and string.match(entry, '^%d+ %d+ (.*)$') == ARGV[4]
local limit = not is_own and passed(ARGV[4], tonumber(ARGV[5]), 1, ARGV[6], ARGV[7])
if limit then return {limit, ''} end
drop_spec(KEYS[1], found)
redis.call('DEL', (string.gsub(KEYS[1], 'manifest$', 'pins')))  -- of a thing that has expired
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], 0, ARGV[2])
book(entry_at(KEYS[1], cjson.decode(ARGV[1]).token), ARGV[5], 1, ARGV[4])
leave(made)
return {false, ARGV[1]}
