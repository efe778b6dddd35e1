-- KEYS: a key of a shard. ARGV: commands. Writes and removes the key; returns the commands that this user may not call.
redis.call('SET', KEYS[1], '', 'PX', 1000)
redis.call('DEL', KEYS[1])
local refused = {}
for _, command in ipairs(ARGV) do
  local is_known, may = pcall(redis.acl_check_cmd, command, KEYS[1], KEYS[1], KEYS[1])
  if is_known and not may then table.insert(refused, command) end
end
return refused
