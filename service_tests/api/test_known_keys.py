import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.api.access import KnownKeys
from app.store.errors import StoreUnavailable
from app.store.keys import Key, Keys, NewKey, Role, draw_key
from service_tests import virtual_time


class Store:
    """Keys as a store has them, and how often it was asked."""

    def __init__(self, *keys: Key) -> None:
        self.keys = {key.id: key for key in keys}
        self.asked = 0
        self.away = False
        self.noted: list[str] = []

    async def changed(self, _: Keys) -> Keys:
        self.asked += 1
        if self.away:
            raise StoreUnavailable("away")
        found = dict(self.keys)
        await asyncio.sleep(0.002)
        return Keys(found, b"state")

    async def note_use(self, key_id: str) -> None:
        self.noted.append(key_id)
        raise StoreUnavailable("takes no writes")


def new() -> NewKey:
    return draw_key(name="k", role=Role.read, quota=None)


def run(play: Callable[[], Coroutine[Any, Any, None]]) -> None:
    virtual_time.run(play())


def test_a_key_is_found_by_its_text_without_a_question_for_each_request() -> None:
    made = new()
    store = Store(made.key)
    known = KnownKeys(store.changed, store.note_use)

    async def play() -> None:
        for _ in range(1000):
            assert await known.find(made.text.encode()) is made.key

    run(play)
    assert store.asked == 1


def test_a_key_made_this_moment_is_found_at_once() -> None:
    made = new()
    store = Store()
    known = KnownKeys(store.changed, store.note_use)

    async def play() -> None:
        assert await known.find(made.text.encode()) is None
        store.keys[made.key.id] = made.key
        assert await known.find(made.text.encode()) is made.key

    run(play)


def test_a_revoked_key_is_gone_within_a_second_and_at_once_where_it_was_revoked() -> None:
    made = new()
    store = Store(made.key)
    known = KnownKeys(store.changed, store.note_use)

    async def play() -> None:
        assert await known.find(made.text.encode()) is made.key
        store.keys.clear()
        began = time.monotonic()
        while await known.find(made.text.encode()) is not None:
            await asyncio.sleep(0.01)
        assert 0.4 < time.monotonic() - began < 0.6
        store.keys[made.key.id] = made.key
        assert await known.get(made.key.id) is None  # as it was not there half a second ago
        known.forget()
        assert await known.get(made.key.id) is made.key

    run(play)


def test_a_thousand_guesses_at_once_share_two_questions() -> None:
    store = Store()
    known = KnownKeys(store.changed, store.note_use)

    async def play() -> None:
        found = await asyncio.gather(*(known.find(new().text.encode()) for _ in range(1000)))
        assert found == [None] * 1000

    run(play)
    assert store.asked <= 3


def test_nobody_is_let_in_while_the_store_is_away() -> None:
    made = new()
    store = Store(made.key)
    known = KnownKeys(store.changed, store.note_use)

    async def play() -> None:
        assert await known.find(made.text.encode()) is made.key
        store.away = True
        known.forget()
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await known.find(made.text.encode())
        store.away = False
        assert await known.find(made.text.encode()) is made.key

    run(play)


def test_a_read_that_fails_after_its_callers_have_left_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: Keys) -> Keys:
        await asyncio.sleep(5)
        raise StoreUnavailable("away")

    known = KnownKeys(fail, Store().note_use)

    async def play() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(known.find(new().text.encode()), 1)
        await asyncio.sleep(10)

    run(play)
    gc.collect()  # logs failures that nobody has retrieved
    assert not caplog.messages


def test_a_key_is_remembered_for_an_hour_and_by_its_own_text() -> None:
    made, unknown = new(), new()
    store = Store(made.key)
    known = KnownKeys(store.changed, store.note_use)

    async def play() -> None:
        assert known.recall(made.text.encode()) is None
        await known.find(made.text.encode())
        known.forget()
        await asyncio.sleep(1800)
        assert known.recall(made.text.encode()) is made.key
        other = made.text[:-1] + ("A" if made.text[-1] != "A" else "B")
        assert [known.recall(text.encode()) for text in (unknown.text, other, "")] == [None] * 3
        store.away = True
        with pytest.raises(StoreUnavailable):
            await known.find(made.text.encode())
        await asyncio.sleep(1799)
        assert known.recall(made.text.encode()) is made.key
        await asyncio.sleep(2)
        assert known.recall(made.text.encode()) is None

    run(play)


def test_a_key_is_valid_until_it_expires() -> None:
    made = draw_key(name="k", role=Role.read, quota=None, expires_at=datetime.now(UTC) + timedelta(hours=1))
    expired = made.key.model_copy(update={"expires_at": datetime.now(UTC) - timedelta(seconds=1)})
    store = Store(made.key)
    known = KnownKeys(store.changed, store.note_use)

    async def play() -> None:
        assert await known.find(made.text.encode()) is made.key
        store.keys[made.key.id] = expired
        known.forget()
        assert await known.find(made.text.encode()) is None
        assert known.recall(made.text.encode()) is None
        assert await known.get(made.key.id) is None

    run(play)


def test_the_use_of_a_key_is_written_down_once_a_minute() -> None:
    made = new()
    store = Store(made.key)
    known = KnownKeys(store.changed, store.note_use)

    async def play() -> None:
        for _ in range(150):
            await known.find(made.text.encode())
            await known.find(new().text.encode())
            await asyncio.sleep(1)

    run(play)
    assert store.noted == [made.key.id] * 3
