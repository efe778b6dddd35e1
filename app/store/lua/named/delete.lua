-- KEYS: manifest, index, chunks. ARGV: manifest, name, receipt, entries. Returns 1 if this call, or the first try of it,
-- has deleted the thing. What is pinned is not deleted; nothing refers to an alias.
if redis.call('EXISTS', receipt(ARGV[3])) == 1 then return 1 end
local stored, found = manifest(KEYS[1])
if stored ~= ARGV[1] or not found.alias_of and is_pinned() then return 0 end
redis.call('DEL', KEYS[1])
drop_spec(KEYS[1], found)
redis.call('ZREM', KEYS[2], ARGV[2])
for i = 3, #KEYS do redis.call('UNLINK', KEYS[i]) end
for i = 4, #ARGV do unbook(ARGV[i]) end
leave(ARGV[3])
return 1
