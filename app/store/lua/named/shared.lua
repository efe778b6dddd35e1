-- Shared functions of scripts: a stored manifest as text and as a table; whether the thing's job has failed; its time to
-- live in seconds once made; the keys of its spec's chunks; removal of its spec and account entry; and the receipt that
-- a delete stores, so that a repeated call returns the same answer.
local function manifest(key)
  local stored = redis.call('GET', key)
  local read, found = pcall(cjson.decode, stored or '')
  return stored, read and type(found) == 'table' and found or {}
end
local function failed(found) return found.error ~= nil and found.error ~= cjson.null end
local function ttl(found) return type(found.ttl) == 'number' and found.ttl or '' end
local function spec_pieces(own, found)
  local keys = {}
  if type(found.spec) ~= 'table' then return keys end
  for i = 0, math.ceil(found.spec.nbytes / PIECE_BYTES) - 1 do table.insert(keys, own .. ':' .. SPEC .. ':' .. i) end
  return keys
end
local function drop_spec(key, found)
  if not found.token then return end
  local own = entry_at(key, found.token)
  unbook(own)
  for _, piece in ipairs(spec_pieces(own, found)) do redis.call('UNLINK', piece) end
end
-- Whether something refers to the thing, see pins.py.
local function is_pinned() return redis.call('EXISTS', (string.gsub(KEYS[1], 'manifest$', 'pins'))) == 1 end
local function receipt(of) return ROOT .. 'deleted:' .. of end
local function leave(of) redis.call('SET', receipt(of), '', 'EX', RECEIPT_SECONDS) end
