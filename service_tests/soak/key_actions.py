"""What clients do with API keys: make them, use them, revoke them, and use them again."""

import time

from service_tests.soak.client import REFUSED, Client
from service_tests.soak.model import Key, Wrong
from service_tests.soak.truth import STANDING

MOST_KEYS = 5
REVOKED_SECONDS = 10.0
"""After so long no process may take a revoked key. A second is promised, and a process may stand still for two."""


def create_key(client: Client) -> None:
    """Make a key that may read."""
    keys = client.model.keys
    if sum(key.valid is not False for key in keys.values()) >= MOST_KEYS:
        return
    name = f"{client.model.prefix}-key{len(keys)}"
    answer = client.ask("POST", "/v1/keys", (201, *REFUSED), json={"name": name, "role": "read"})
    if answer is None:
        keys[name] = Key(valid=None)
    elif answer.status_code == 201:
        keys[name] = Key(answer.json()["id"], answer.json()["key"], valid=True)


def use_key(client: Client) -> None:
    """Read with a key, valid or revoked."""
    usable = [(name, key) for name, key in client.model.keys.items() if key.text]
    if not usable:
        return
    name, key = client.chance.choice(usable)
    revoked = key.valid is False and time.monotonic() > key.revoked + REVOKED_SECONDS
    wanted = (200,) if key.valid else (401,) if revoked else (200, 401)
    headers = {"Authorization": f"Bearer {key.text}"}
    answer = client.ask("GET", f"/v1/maps/{STANDING}", wanted, headers=headers)
    if answer is not None and key.valid:
        refused = client.ask("DELETE", f"/v1/maps/{STANDING}", (403,), headers=headers)
        if refused is not None and "role" not in refused.text:
            raise Wrong(f"key {name} is refused in other words: {refused.text}")


def revoke_key(client: Client) -> None:
    """Revoke a key."""
    known = [key for key in client.model.keys.values() if key.id and key.valid]
    if not known:
        return
    key = client.chance.choice(known)
    answer = client.ask("DELETE", f"/v1/keys/{key.id}", (204, *REFUSED))
    if answer is None:
        key.valid = None
    elif answer.status_code == 204:
        key.valid, key.revoked = False, time.monotonic()


def list_keys(client: Client) -> None:
    """List all keys, and see which there are of those that nobody knows about."""
    answer = client.ask("GET", "/v1/keys", (200,))
    if answer is None:
        return
    there = {key["name"]: key["id"] for key in answer.json()["keys"]}
    for name, key in client.model.keys.items():
        if key.valid is None:
            key.valid, key.id, key.revoked = name in there, there.get(name, key.id), time.monotonic()
        elif key.valid != (name in there):
            raise Wrong(f"key {name} is {'' if name in there else 'not '}listed; it is valid or not ({key.valid})")
