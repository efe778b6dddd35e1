-- KEYS: sums. ARGV: most bytes, most names ('' for no limit), owner, an entry that has reserved the room ('' for none;
-- the first itself if the room is not to be checked), seconds to live, then key, bytes and names of each entry. Returns
-- '', the time when keys must expire and whether the room was reserved; or the limit that would be exceeded. A repeated
-- charge finds its entries.
local owner, seconds, bytes, names = ARGV[3], tonumber(ARGV[5]), 0, 0
if booked(ARGV[6]) then return {'', math.floor(redis.call('ZSCORE', ENDS, ARGV[6]) or now()) - 1, 0} end
sweep()
for i = 6, #ARGV, 3 do bytes, names = bytes + ARGV[i + 1], names + ARGV[i + 2] end
local roomy = ARGV[4] == ARGV[6] or booked(ARGV[4])
local limit = not roomy and passed(owner, bytes, names, ARGV[1], ARGV[2])
if limit then return limit end
local deadline = math.floor(now()) + seconds
for i = 6, #ARGV, 3 do
  book(ARGV[i], ARGV[i + 1], ARGV[i + 2], owner)
  redis.call('ZADD', ENDS, deadline + 1, ARGV[i])
end
return {'', deadline, roomy and 1 or 0}
