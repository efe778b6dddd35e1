-- Drops a message that no waiting job names.
if mine() then return 'ok' end
if newer() then leave_to_newer() return get('format') end
if get('state') ~= 'queued' or get('message') ~= message then dequeue(message) return '' end
set('state', 'running', 'format', FORMAT)
if get('started') == '' then
  set('started', now())
  tally_seconds('waited', get('created'))
end
event()
return 'ok'
