"""Names that are held for what a job makes.

A reservation is the manifest of a thing that has no arrays yet, and names the job that makes them. It is put there by
the script that submits the job, removed by the one that cancels it, marked by the one that fails it, and replaced by
the one that stores what the job has made. A name whose job has failed is free for the next that wants it.
"""

from enum import StrEnum
from typing import NamedTuple

from app.store import account
from app.store.pieces import PIECE_BYTES

SPEC = "spec.json"
"""Name of the pieces of a thing's spec; no array has a dot in its name."""
# Longer than a client library repeats a call.
RECEIPT_SECONDS = 300


class State(StrEnum):
    """What has become of a thing."""

    building = "building"
    failed = "failed"
    ready = "ready"


class Reservation(NamedTuple):
    """A name to be held, together with the job that is to make the thing."""

    key: str
    """Key of the manifest."""
    listing: str
    """Sorted set that lists the names."""
    name: str
    manifest: bytes
    pieces: list[str]
    """Keys of what was written for it, with a time to live."""
    entry: str
    """Its key in the account."""


class NameTaken(Exception):
    """A name is taken, or the reservation that was to be replaced is gone."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {name!r} is taken")


# For scripts: what stands under a manifest's key, as text and as a table; whether a job has failed to make it; the
# seconds that it lives once it is made; its spec, which lies beside it in pieces, and what frees that, and its entry;
# and the receipt that whoever deletes it leaves, to get the same answer should the call be repeated.
LUA = f"""{account.LUA}
local function manifest(key)
  local stored = redis.call('GET', key)
  local read, found = pcall(cjson.decode, stored or '')
  return stored, read and type(found) == 'table' and found or {{}}
end
local function failed(found) return found.error ~= nil and found.error ~= cjson.null end
local function ttl(found) return type(found.ttl) == 'number' and found.ttl or '' end
local function spec_pieces(own, found)
  local keys = {{}}
  if type(found.spec) ~= 'table' then return keys end
  for i = 0, math.ceil(found.spec.nbytes / {PIECE_BYTES}) - 1 do table.insert(keys, own .. ':{SPEC}:' .. i) end
  return keys
end
local function drop_spec(key, found)
  if not found.token then return end
  local own = entry_at(key, found.token)
  unbook(own)
  for _, piece in ipairs(spec_pieces(own, found)) do redis.call('UNLINK', piece) end
end
local function receipt(of) return ROOT .. 'deleted:' .. of end
local function leave(of) redis.call('SET', receipt(of), '', 'EX', {RECEIPT_SECONDS}) end
"""
