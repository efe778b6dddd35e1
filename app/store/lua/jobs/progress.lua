-- ARGV: id, message, progress, step, of, objective, eta.
if not mine() then return 0 end
if get('cancel') ~= '' then return 0 end
set('progress', ARGV[3], 'step', ARGV[4], 'of', ARGV[5], 'objective', ARGV[6], 'eta', ARGV[7])
event()
return 1
