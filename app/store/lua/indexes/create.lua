-- KEYS: manifest, listing. ARGV: token, manifest, name, time to live in seconds ('' for ever), owner, most bytes, most
-- names, an entry that holds the room until now ('' for none). Returns the limit that would be exceeded, if any, and the
-- manifest stored then, even if the first try of this call has stored it, and others have deleted it since.
local stored, found = manifest(KEYS[1])
local made = 'made ' .. ARGV[1]
if not stored and redis.call('EXISTS', receipt(made)) == 1 then return {false, ARGV[2]} end
if stored and not failed(found) then return {false, stored} end
sweep()
unbook(ARGV[8])
local limit = passed(ARGV[5], base(), 1, ARGV[6], ARGV[7])
if limit then return {limit, ''} end
drop_spec(KEYS[1], found)
if ARGV[4] == '' then redis.call('SET', KEYS[1], ARGV[2]) else redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[4]) end
redis.call('ZADD', KEYS[2], 0, ARGV[3])
begin()
live_on()
book(own, base(), 1, ARGV[5])
lives(own, ARGV[4])
leave(made)
return {false, ARGV[2]}
