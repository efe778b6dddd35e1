"""The scripts that the store runs: each changes all keys of a thing at once, or none.

A client library repeats a call whose reply was lost, and the first one may have been carried out. The scripts
therefore compare what is there with what the caller means: a repeated commit finds its own manifest and returns it, a
repeated delete finds nothing left to do.
"""

from app.store.reservations import LUA

# KEYS: manifest, index, pieces. ARGV: manifest, name, token of the thing that it takes the place of ('' for a name that
# is free), and the seconds that all of it lives ('' for ever). Gives the manifest that stands then, '' for none, nil if
# pieces are missing.
COMMIT = f"""{LUA}
local stored, found = manifest(KEYS[1])
if ARGV[3] == '' and stored and not failed(found) then return stored end
-- What version 0.1.0 has reserved has no token but its job.
if ARGV[3] ~= '' and ((found.token or found.job) ~= ARGV[3] or failed(found)) then return stored or '' end
for i = 3, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then return false end
end
if found.job then drop_spec(KEYS[1], found) end
if ARGV[4] == '' then
  redis.call('SET', KEYS[1], ARGV[1])
  for i = 3, #KEYS do redis.call('PERSIST', KEYS[i]) end
else
  redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[4])
  for i = 3, #KEYS do redis.call('EXPIRE', KEYS[i], ARGV[4]) end
end
redis.call('ZADD', KEYS[2], 0, ARGV[2])
return ARGV[1]
"""

# KEYS: manifest, index, pieces. ARGV: manifest, name.
DELETE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[2])
for i = 3, #KEYS do redis.call('UNLINK', KEYS[i]) end
"""

# KEYS: index, manifests. ARGV: the names of the manifests. A name made anew meanwhile stays.
FORGET = """
for i = 2, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 0 then redis.call('ZREM', KEYS[1], ARGV[i - 1]) end
end
"""
