-- ARGV: id, message. KEYS from 5: what an attempt has written and has not made permanent; it goes with its entries.
if not mine() then return 0 end
for i = 5, #KEYS do
  if redis.call('TTL', KEYS[i]) ~= -1 then
    redis.call('UNLINK', KEYS[i])
    unbook(entry_of(KEYS[i]))
  end
end
return 1
