-- KEYS: sums. ARGV: owner, '' for all. Works on a store that accepts no writes, too.
pcall(sweep)
local of = ARGV[1] == '' and '' or ' ' .. ARGV[1]
return redis.call('HMGET', SUMS, 'bytes' .. of, 'names' .. of)
