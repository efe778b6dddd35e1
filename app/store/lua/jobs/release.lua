-- ARGV: id, message, deaths to add, most deaths, seconds to keep, error, time since which the job waits. A job whose
-- message was read but not claimed goes back to the queue unchanged; a message without a job is dropped.
if newer() then leave_to_newer() return '' end
local state = get('state')
if get('message') ~= message or (state ~= 'running' and state ~= 'queued') then dequeue(message) return '' end
if state == 'running' then
  local deaths = tonumber('0' .. get('deaths')) + tonumber(ARGV[3])
  set('deaths', deaths)
  if get('cancel') ~= '' then finish('cancelled', tonumber(ARGV[5])) return 'cancelled' end
  if deaths > tonumber(ARGV[4]) then
    set('error', ARGV[6])
    finish('failed', tonumber(ARGV[5]))
    return 'failed'
  end
  set('state', 'queued', 'eta', '')
  event()
end
dequeue(message)
enqueue(state == 'queued' and ARGV[7])
return 'queued'
