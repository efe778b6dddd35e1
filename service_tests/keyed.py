"""Keys of a service, made as its operator would, and what is answered to who has none."""

from typing import NamedTuple

import httpx
import redis

from app.services.keys import AskedKey, CreatedKey, KeyService
from app.store.account import Account
from app.store.keys import KeyStore, Role
from service_tests.running import Running


class Keyed(NamedTuple):
    """A service that needs keys, and a key of each role."""

    running: Running
    texts: dict[Role, str]

    def client(self, role: Role) -> httpx.Client:
        """A client that sends the key of a role."""
        return self.running.client(**bearer(self.texts[role]))

    def make(
        self, role: Role, rate: float | None = None, burst: int | None = None, quota: int | None = None
    ) -> CreatedKey:
        """One more key."""
        return made(self.running.socket, AskedKey(name=f"a-{role}", role=role, rate=rate, burst=burst, quota=quota))


def made(store: str, asked: AskedKey) -> CreatedKey:
    """A key in the store at a URL."""
    with redis.Redis.from_url(store) as client:
        return KeyService(KeyStore(client, 1000), Account(client)).create(asked)


def keyed(running: Running) -> Keyed:
    """A service with a key of each role."""
    return Keyed(running, {role: made(running.socket, AskedKey(name=f"the-{role}", role=role)).key for role in Role})


def bearer(text: str) -> dict[str, str]:
    """The header that sends a key."""
    return {"Authorization": f"Bearer {text}"}


def assert_unauthorized(answer: httpx.Response, head: bool = False) -> None:
    """The answer asks for a key; the one to a HEAD has no body."""
    assert answer.status_code == 401, answer.text
    assert answer.headers["www-authenticate"].startswith('Bearer realm="bochner"')
    assert answer.headers["x-request-id"]
    if not head:
        assert answer.json()["type"] == "/problems/unauthorized"


def secret_of(text: str) -> str:
    """The part of a key that nobody else may see."""
    return text.split("_", 2)[2]
