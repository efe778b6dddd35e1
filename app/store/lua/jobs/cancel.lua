-- ARGV: id, '', seconds to keep, receipt to store if this frees the name that the job holds ('' for none), token of
-- this call. A store that is out of memory lets a script write only after it has deleted something, so the script
-- deletes first.
local state = get('state')
if get('canceller') == ARGV[5] then return 'running' end
if state ~= 'queued' and state ~= 'running' then return state end
if get('started') ~= '' and get('cancel') == '' and get('placeholder_key') ~= '' and not reserved() then
  -- What it was to make is made, and only its own end is not written down yet.
  return 'made'
end
local frees = reserved() and ARGV[4] ~= ''
if state == 'queued' then finish('cancelled', tonumber(ARGV[3])) end
if state == 'running' and get('cancel') == '' then
  free_name()
  set('cancel', 1)
  -- With its worker dead, nobody else might be there to end it.
  if not held() then finish('cancelled', tonumber(ARGV[3])) end
end
if get('canceller') == '' then set('canceller', ARGV[5]) end
if frees then leave(ARGV[4]) end
return state
