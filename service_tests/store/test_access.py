"""The access list of the composed service: who gets in, and what it must still allow."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from app.store import identity
from app.store.connection import connect
from app.store.errors import StoreUnavailable
from app.store.servers import check_writable
from service_tests.running import free_port
from service_tests.servers import EVERY_WRITE, STORE_PROGRAM, access_list, answers, until


@contextmanager
def composed_store(tmp_path: Path, *without: str) -> Iterator[str]:
    """A store that lets in only who the list names; on what it was left with, if it ran there before.

    Its user may not call some commands.
    """
    port = free_port()
    acl = access_list(tmp_path, "drawn")
    acl.write_text(" ".join(word for word in acl.read_text().split(" ") if word not in {f"+{one}" for one in without}))
    command = [str(STORE_PROGRAM), "--port", str(port), "--dir", str(tmp_path), "--aclfile", str(acl), *EVERY_WRITE]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    url = f"redis://bochner:drawn@127.0.0.1:{port}/0"
    try:
        until(lambda: answers(url))
        yield url
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    with composed_store(tmp_path) as url:
        yield url


def test_what_was_written_together_is_there_when_the_store_starts_again(tmp_path: Path) -> None:
    """A server that loads its file carries out transactions by the rights of `default`, who gets in nowhere."""
    for first in (True, False):
        with composed_store(tmp_path) as url, redis.Redis.from_url(url) as client:
            if first:
                client.pipeline(transaction=True).set("bochner:a", 1).set("bochner:b", 2).execute()
                client.eval("redis.call('SET', KEYS[1], 3) redis.call('SET', KEYS[2], 4)", 2, "bochner:c", "bochner:d")
            assert client.mget("bochner:a", "bochner:b", "bochner:c", "bochner:d") == [b"1", b"2", b"3", b"4"]


@pytest.mark.nightly
def test_it_lets_an_operator_back_up_and_restore(guarded: str, tmp_path: Path) -> None:
    with redis.Redis.from_url(guarded) as client:
        client.set("bochner:a", 1)
        identity.put(client, identity.Mark(id="x", state="found"))
        for command in ("backup", "restore"):
            line = [sys.executable, "-m", "app", command, str(tmp_path / "file"), "--redis-url", guarded]
            ended = subprocess.run(line, capture_output=True, text=True, check=False)
            assert ended.returncode == 0, ended.stderr
            assert client.get("bochner:a") == b"1"
            client.delete("bochner:a", identity.KEY)


@pytest.mark.parametrize("who", ["", "default:drawn@", "bochner:change-me@"])
def test_nobody_gets_in_without_the_password(guarded: str, who: str) -> None:
    with (
        redis.Redis.from_url(guarded.replace("bochner:drawn@", who)) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.get("bochner:a")


def test_a_right_that_is_missing_is_named(guarded: str, tmp_path: Path) -> None:
    with connect(guarded, 5) as client:
        assert check_writable(client) == []
    for without, told in (
        (("persist", "zrem"), r"may not call PERSIST, ZREM: docker/users\.acl"),
        (("evalsha",), "the store"),
    ):
        directory = tmp_path / without[0]
        directory.mkdir()
        with (
            composed_store(directory, *without) as url,
            connect(url, 5) as client,
            pytest.raises(StoreUnavailable, match=told),
        ):
            check_writable(client)
