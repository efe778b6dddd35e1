import asyncio
import json
import re
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import redis

from app.services.keys import AskedKey
from app.store.connection import connect, connect_loop
from app.store.keys import KEYS, Keys, KeyStore, NewKey, Role, TooManyKeys, draw_key, id_in, note_use, reload
from service_tests.cases import each
from service_tests.keyed import assert_unauthorized, bearer, made
from service_tests.running import service
from service_tests.servers import EVERY_WRITE, until, valkey, wire

NONE = Keys({}, None)


def new(name: str = "k", role: Role = Role.read) -> NewKey:
    return draw_key(name=name, role=role, quota=None)


@pytest.fixture
def keys(client: redis.Redis) -> KeyStore:
    return KeyStore(client, 3)


def looked(url: str, known: Keys) -> Keys:
    async def look() -> Keys:
        client = connect_loop(url, 5)
        try:
            return await reload(redis.Redis(), client, known)
        finally:
            await client.aclose()

    return asyncio.run(look())


def test_a_text_opens_its_key_and_no_other() -> None:
    one, other = new(), new()
    assert one.key.opens_with(one.text.encode())
    assert not one.key.opens_with(other.text.encode())
    for i in range(len(one.text)):  # each character counts
        changed_text = one.text[:i] + ("a" if one.text[i] != "a" else "b") + one.text[i + 1 :]
        assert not one.key.opens_with(changed_text.encode())
    assert not one.key.opens_with(b"")


def test_a_text_holds_256_random_bits_and_the_store_none_of_them() -> None:
    made = [new() for _ in range(100)]
    secrets = {one.text.removeprefix(f"bochner_{one.key.id}_") for one in made}
    assert len(secrets) == len({one.key.id for one in made}) == 100
    assert all(re.fullmatch("[A-Za-z0-9_-]{43}", secret) for secret in secrets)
    assert not any(secret in one.key.model_dump_json() for one, secret in zip(made, secrets, strict=True))


@each(
    "text",
    [b"", b"bochner_", b"bochner_0123456789abcdef_", b"bochner_0123456789ABCDEF_" + b"a" * 43]
    + [
        b"bochner_0123456789abcdef_" + secret
        for secret in (b"a" * 42, b"a" * 44, b"a" * 42 + b"\xff", b"a" * 43 + b"\n")
    ]
    + [b" bochner_0123456789abcdef_" + b"a" * 43, b"x" * 65536],
)
def test_what_is_no_key_has_no_id(text: bytes) -> None:
    assert id_in(text) is None


def test_keys_are_created_listed_and_revoked(keys: KeyStore) -> None:
    made = [new(f"k{i}") for i in range(3)]
    for one in made:
        keys.create(one.key)
    assert sorted(keys.all(), key=lambda key: key.name) == [one.key for one in made]
    assert keys.revoke(made[1].key.id)
    assert not keys.revoke(made[1].key.id)
    assert not keys.revoke("0" * 16)
    assert {key.name for key in keys.all()} == {"k0", "k2"}


def test_there_are_no_more_keys_than_allowed(keys: KeyStore) -> None:
    made = [new() for _ in range(4)]
    for one in made[:3]:
        keys.create(one.key)
    with pytest.raises(TooManyKeys, match="3 keys"):
        keys.create(made[3].key)
    keys.revoke(made[0].key.id)
    keys.create(made[3].key)
    assert len(keys.all()) == 3


@pytest.mark.parametrize("command", [b"bochner:keys"])
def test_a_reply_that_is_lost_changes_nothing(keys: KeyStore, url: str, command: bytes) -> None:
    with wire(url) as line, connect(line.url, 5) as client:
        over_it = KeyStore(client, 1)
        made = new()
        line.lose_reply_to(command)
        over_it.create(made.key)  # the second time there is as many as there may be: this one
        line.lose_reply_to(command)
        assert over_it.revoke(made.key.id)
        assert line.lost == 2
    assert keys.all() == []


def test_a_store_that_was_emptied_or_restored_is_noticed(keys: KeyStore, client: redis.Redis, url: str) -> None:
    old, later = new(), new()
    keys.create(old.key)
    copy = {name: client.dump(name) for name in client.scan_iter()}
    keys.create(later.key)
    keys.revoke(old.key.id)
    known = looked(url, NONE)
    assert set(known.by_id) == {later.key.id}
    client.flushall()
    assert looked(url, known).by_id == {}
    for name, value in copy.items():
        client.restore(name, 0, value or b"")
    assert set(looked(url, known).by_id) == {old.key.id}


@pytest.mark.parametrize("change", [{"schema_version": 3}, {"role": "owner"}, {"new": 1}])
def test_a_key_that_this_version_cannot_read_lets_nobody_in(
    keys: KeyStore, client: redis.Redis, url: str, change: dict[str, object]
) -> None:
    made, other = new(), new()
    keys.create(made.key)
    keys.create(other.key)
    stored = json.loads(client.hget(KEYS, made.key.id) or b"")
    client.hset(KEYS, made.key.id, json.dumps(stored | change))
    assert keys.all() == [other.key]
    assert looked(url, NONE).by_id == {other.key.id: other.key}
    assert keys.revoke(made.key.id)


def test_a_key_that_was_known_sees_metrics_alone_while_the_store_is_away(tmp_path: Path) -> None:
    with ExitStack() as here, ExitStack() as store:
        url = store.enter_context(valkey(tmp_path, *EVERY_WRITE))
        running = here.enter_context(service(tmp_path / "data", "--redis-url", url, "--require-keys", "true"))
        texts = [
            made(url, AskedKey(name="k", role=role, rate=rate)).key
            for role, rate in ((Role.metrics, None), (Role.read, 1000), (Role.admin, None))
        ]
        http = here.enter_context(running.client())
        for text in texts:
            assert "bochner_store_up 1.0" in http.get("/metrics", headers=bearer(text)).text
        store.close()
        # Keys that were looked at half a second ago still let their holders in.
        until(lambda: http.get("/v1/catalog", headers=bearer(texts[0])).status_code == 503)
        for text in texts:
            answer = http.get("/metrics", headers=bearer(text))
            assert answer.status_code == 200, answer.text
            assert "bochner_store_up 0.0" in answer.text
            for path in ("/v1/maps", "/v1/info", "/v1/catalog", "/metrics/"):
                assert http.get(path, headers=bearer(text)).status_code == 503
        assert http.get("/metrics", headers=bearer(new().text)).status_code == 503
        assert http.get("/metrics", headers=bearer(texts[0][:-1] + "B")).status_code == 503
        assert_unauthorized(http.get("/metrics"))


def test_when_a_key_was_used_last_is_kept(keys: KeyStore, url: str) -> None:
    async def use() -> None:
        client = connect_loop(url, 5)
        await note_use(client, "used")
        await client.aclose()

    asyncio.run(use())
    used, never = keys.last_uses(["used", "never"])
    assert used is not None
    assert abs(used - datetime.now(UTC)) < timedelta(minutes=1)
    assert never is None


def test_a_key_that_never_expires_is_known_to_the_version_before(keys: KeyStore, client: redis.Redis) -> None:
    forever, expiring = new(), draw_key(name="k", role=Role.read, quota=None, expires_at=datetime.now(UTC))
    for one in (forever, expiring):
        keys.create(one.key)
    stored = {key: json.loads(text) for key, text in client.hgetall(KEYS).items()}
    assert stored[forever.key.id.encode()]["schema_version"] == 1
    assert "expires_at" not in stored[forever.key.id.encode()]
    assert stored[expiring.key.id.encode()]["schema_version"] == 2
    assert {key.id: key for key in keys.all()}[expiring.key.id] == expiring.key
