"""The scripts that the store runs: each changes all keys of a thing at once, or none, and their entries in the account.

A client library repeats a call whose reply was lost, and the first one may have been carried out. The scripts
therefore compare what is there with what the caller means: a repeated commit finds its own manifest and returns it, a
repeated delete finds the receipt that the first one has left.
"""

from app.store.reservations import LUA

# Puts a manifest at the first key, and lets it live for so many seconds ('' for ever), with all pieces from a key on.
_STAND = """
-- Whether indexes are over the thing.
local function is_pinned() return redis.call('EXISTS', (string.gsub(KEYS[1], 'manifest$', 'pins'))) == 1 end
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
"""

# KEYS: manifest, index, pieces. ARGV: manifest, name, token of the thing that it takes the place of ('' for a name that
# is free), the seconds that all of it lives ('' for ever), its own token. Gives the manifest that stands then, '' for
# none, nil if pieces are missing. Pieces that are not wanted go at once, unless it is a reservation that stands and has
# been given another time to live: then they are to be committed once more, for that time.
COMMIT = f"""{LUA}{_STAND}
local stored, found = manifest(KEYS[1])
local there = found.token
local free = ARGV[3] == '' and (not stored or failed(found))
if not free and (ARGV[3] == '' or there ~= ARGV[3] or failed(found)) then
  if there == ARGV[5] then return stored end
  for i = 3, #KEYS do redis.call('UNLINK', KEYS[i]) end
  unbook(entry_at(KEYS[1], ARGV[5]))
  return stored or ''
end
if not free and found.job and tostring(ttl(found)) ~= ARGV[4] then return stored end
if not are_there(3) then return false end
if found.job then drop_spec(KEYS[1], found) end
stand(ARGV[1], ARGV[4], 3)
lives(entry_at(KEYS[1], ARGV[5]), ARGV[4])
redis.call('ZADD', KEYS[2], 0, ARGV[2])
return ARGV[1]
"""

# KEYS: manifest, pieces. ARGV: the manifest that stands, the one that takes its place and is of the same thing, the
# seconds that all of it lives from now on ('' for ever), its token. Gives 0 if another stands there, nil if pieces are
# missing, 2 if it must live for ever, as indexes are over it, else 1.
RENEW = f"""{LUA}{_STAND}
local stored = redis.call('GET', KEYS[1])
if stored ~= ARGV[1] then return stored == ARGV[2] and 1 or 0 end
if not are_there(2) then return false end
if ARGV[3] ~= '' and is_pinned() then return 2 end
stand(ARGV[2], ARGV[3], 2)
lives(entry_at(KEYS[1], ARGV[4]), ARGV[3])
return 1
"""

# KEYS: manifest, index, pieces. ARGV: manifest, name, receipt, entries. Gives 1 if this call, or the first try of it,
# has deleted what was meant. What indexes are over is not deleted.
DELETE = f"""{LUA}{_STAND}
if redis.call('EXISTS', receipt(ARGV[3])) == 1 then return 1 end
local stored, found = manifest(KEYS[1])
if stored ~= ARGV[1] or is_pinned() then return 0 end
redis.call('DEL', KEYS[1])
drop_spec(KEYS[1], found)
redis.call('ZREM', KEYS[2], ARGV[2])
for i = 3, #KEYS do redis.call('UNLINK', KEYS[i]) end
for i = 4, #ARGV do unbook(ARGV[i]) end
leave(ARGV[3])
return 1
"""

# KEYS: index, manifests. ARGV: the names of the manifests. A name made anew meanwhile stays.
FORGET = """
for i = 2, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then redis.call('ZREM', KEYS[1], ARGV[i - 1]) end
end
"""
