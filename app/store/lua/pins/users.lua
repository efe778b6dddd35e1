-- KEYS: pins. ARGV: seconds for which a reference counts without its user. Returns each user and whether its reference
-- is that young.
local found, read = {}, redis.call('HGETALL', KEYS[1])
for i = 1, #read, 2 do table.insert(found, {read[i], now() - tonumber(read[i + 1]) < tonumber(ARGV[1]) and 1 or 0}) end
return found
