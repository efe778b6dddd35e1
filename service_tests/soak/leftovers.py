"""What the store may hold when everything was deleted: no more than is still wanted, and what goes by itself."""

from typing import cast

import redis

from app.jobs.scripts import QUEUE
from app.store.connection import ROOT, inside, places_of, root_of
from service_tests.soak.model import Wrong
from service_tests.soak.truth import STANDING

ACCOUNT = (b"bochner:account", b"bochner:account:entries", b"bochner:account:ends")
KEYS = (b"bochner:keys", b"bochner:keys:state")
JOBS = (b"bochner:jobs", b"bochner:jobs:ended", b"bochner:jobs:tally", QUEUE.encode())
LISTS = {b"bochner:maps", b"bochner:indexes", b"bochner:store", *JOBS, *ACCOUNT, *KEYS}


def check_leftovers(store: redis.Redis) -> None:
    """Raise Wrong where a key stays for ever, or is not in the account as it is."""
    keys: set[bytes] = set(store.scan_iter(count=1000))
    standing = f"bochner:{{map:{STANDING}}}:".encode()
    left = (key for key in keys if not (own := _in_one_place(key)).startswith(standing) and own not in LISTS)
    lasting = sorted(key for key in left if store.ttl(key) == -1)
    if lasting:
        raise Wrong(f"the store keeps for ever what was deleted: {lasting[:10]}")
    for root in places_of(store).roots:
        if waiting := store.xlen(inside(root, QUEUE)):
            raise Wrong(f"{waiting} messages of jobs are left, and no job")
        _, entries, ends = (inside(root, key.decode()) for key in ACCOUNT)
        ending = set(store.zrange(ends, 0, -1))
        booked = {cast(bytes, one) for one in store.hkeys(entries)}
        lost = [one for one in booked - ending if not any(key.startswith(one) for key in keys)]
        if lost:
            raise Wrong(f"the account has entries of what is not there: {lost[:10]}")


def _in_one_place(key: bytes) -> bytes:
    """A key as it is called in a store that is one place."""
    return ROOT.encode() + key.removeprefix(root_of(key.decode()).encode())
