-- The beginning of all scripts that change what is stored. While a backup is being put back, nothing else may change it.
local ROOT = string.match(KEYS[1], '^bochner:{%w+}:') or 'bochner:'
if string.find(redis.call('GET', ROOT .. 'store') or '', '"restoring"', 1, true) then
  return redis.error_reply('LOADING a backup is being put back into the store')
end
