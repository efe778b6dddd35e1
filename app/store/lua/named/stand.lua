-- Shared functions of scripts. `stand` stores a manifest under the first key; the manifest, and the chunks from key
-- number `first` on, live for the given seconds ('' for ever).
local function are_there(first)
  for i = first, #KEYS do
    if redis.call('EXISTS', KEYS[i]) == 0 then return false end
  end
  return true
end
local function stand(text, seconds, first)
  if seconds == '' then
    redis.call('SET', KEYS[1], text)
    for i = first, #KEYS do redis.call('PERSIST', KEYS[i]) end
  else
    redis.call('SET', KEYS[1], text, 'EX', seconds)
    for i = first, #KEYS do redis.call('EXPIRE', KEYS[i], seconds) end
  end
end
