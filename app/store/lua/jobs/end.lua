-- ARGV: id, message, state, seconds to keep, error, bodies. KEYS from 5: keys to keep.
if get('message') == message and get('state') == ARGV[3] then return 1 end
if not mine() then return 0 end
-- This call may arrive late, after its attempt has given it up and discarded what it has written.
for i = 5, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then return 0 end
end
-- Whoever has asked for the end has been answered that it will come.
local state = get('cancel') == '' and ARGV[3] or 'cancelled'
if state == 'failed' then set('error', ARGV[5]) end
if state == 'succeeded' then set('bodies', ARGV[6]) end
finish(state, tonumber(ARGV[4]))
return 1
