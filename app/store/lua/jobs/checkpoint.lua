-- ARGV: id, message, prefix of the new checkpoint. KEYS from 5: its chunks.
if not mine() then return 0 end
local before = get('checkpoint')
if before == ARGV[3] then return 1 end
for i = 5, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then return 0 end
end
for i = 5, #KEYS do redis.call('PERSIST', KEYS[i]) end
for i = 0, tonumber('0' .. get('checkpoint_pieces')) - 1 do
  redis.call('UNLINK', before .. ':' .. i)
  redis.call('SREM', base .. 'keys', before .. ':' .. i)
end
if before ~= '' then unbook(before) end
lives(ARGV[3], '')
set('checkpoint', ARGV[3], 'checkpoint_pieces', #KEYS - 4, 'deaths', 0)
return 1
