-- KEYS: manifest, chunks. ARGV: token, the current manifest, the new manifest of the same thing, time to live in seconds
-- from now on ('' for ever). Returns 0 if another manifest is stored, nil if chunks are missing, 2 if the thing must
-- live for ever because it is pinned, else 1.
local stored = redis.call('GET', KEYS[1])
if stored ~= ARGV[2] then return stored == ARGV[3] and 1 or 0 end
if not are_there(2) then return false end
if ARGV[4] ~= '' and is_pinned() then return 2 end
stand(ARGV[3], ARGV[4], 2)
lives(entry_at(KEYS[1], ARGV[1]), ARGV[4])
return 1
