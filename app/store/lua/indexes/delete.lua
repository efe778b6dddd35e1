-- KEYS: manifest, listing. ARGV: token, manifest, name, receipt. Returns 1 if this call, or the first try of it, has
-- deleted the index.
if redis.call('EXISTS', receipt(ARGV[4])) == 1 then return 1 end
if redis.call('GET', KEYS[1]) ~= ARGV[2] or is_pinned() then return 0 end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[3])
with_all_entries(unbook)
with_all_keys(function(some) redis.call('UNLINK', unpack(some)) end)
redis.call('UNLINK', at('receipts'))
leave(ARGV[4])
return 1
