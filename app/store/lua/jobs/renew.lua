-- ARGV: id, message, seconds run in all attempts; and if a turn without progress is given up, the total seconds of
-- all such turns.
if not mine() then return 'lost' end
if get('cancel') ~= '' then return 'cancelled' end
redis.call('XCLAIM', queue, GROUP, CONSUMER, 0, message, 'JUSTID')
set('ran', ARGV[3])
if ARGV[4] then set('lost', ARGV[4]) end
return 'ok'
