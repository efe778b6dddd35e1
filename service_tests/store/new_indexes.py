"""Indexes to store, and vectors to put into them."""

import secrets
from collections.abc import Sequence

from app.store.indexes import NONE_KNOWN, Entry, IndexManifest, IndexStore, Keep, MapOfIndex
from app.store.manifest import now
from app.store.named import end

S = 24


def new_index(name: str = "i", keep: Keep = "codes", ttl: int | None = None, over: str = "m") -> IndexManifest:
    return IndexManifest(
        schema_version=IndexManifest.newest,
        token=secrets.token_hex(8),
        name=name,
        digest="d",
        created_at=now(),
        map=MapOfIndex(name=over, token="t", digest="d"),
        asked="{}",
        bits=8,
        s=S,
        keep=keep,
        ttl=ttl,
        expires_at=end(ttl),
    )


def entry(number: int, version: int = 0, vector: bytes = b"") -> Entry:
    """The vector of an id, whose mark and codes tell which version of it they are."""
    return Entry(b"s%d" % number, number.to_bytes(8, "little") + version.to_bytes(2, "little") * (S // 2), vector)


def held(store: IndexStore, manifest: IndexManifest) -> dict[bytes, bytes]:
    """Mark and codes of each id, as the blocks have them."""
    part = store.changes(manifest, NONE_KNOWN, 1 << 30)
    found: dict[bytes, bytes] = {}
    left = part.state.size
    for block in part.blocks.values():
        ids = [*split(block.ids)]
        assert len(ids) == min(left, 128)
        left -= len(ids)
        rows = [block.codes[i : i + 8 + S] for i in range(0, len(block.codes), 8 + S)]
        assert len(rows) == 128
        assert not any(b"".join(rows[len(ids) :])), "something of a vector is left behind the last one"
        assert not found.keys() & {*ids}
        found |= zip(ids, rows, strict=False)
    assert len(part.revisions) == len(part.blocks)
    return found


def split(text: bytes) -> Sequence[bytes]:
    found = []
    while text:
        n = 2 + int.from_bytes(text[:2], "little")
        found.append(text[2:n])
        text = text[n:]
    return found
