import logging.config
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from app.commands.options import checked_settings
from app.store import server, servers
from app.store.connection import connect
from app.store.errors import StoreOutdated, StoreUnavailable, in_full, store_errors
from app.store.servers import StoreInfo, check_writable, keeping
from service_tests.cases import each
from service_tests.clusters import Node, free_ports
from service_tests.servers import EVERY_WRITE, VOLATILE, until, valkey


@contextmanager
def kept(directory: Path, *options: str) -> Iterator[StoreInfo]:
    with valkey(directory, *options) as url, connect(url, 5) as client:
        yield keeping(client)


@pytest.mark.parametrize(
    ("options", "durability"),
    [
        (EVERY_WRITE, "always"),
        (("--appendonly", "yes", "--appendfsync", "everysec"), "everysec"),
        (("--appendonly", "yes", "--appendfsync", "no"), "rdb"),
        (VOLATILE, "volatile"),
    ],
)
def test_durability_is_read_from_the_server(tmp_path: Path, options: tuple[str, ...], durability: str) -> None:
    with kept(tmp_path, *options) as found:
        assert found.durability == durability
        assert found.server.startswith(("valkey ", "redis "))
        assert found.maxmemory_policy == "noeviction"
        assert (found.unfit() is None) == (durability != "volatile")
        assert any(durability in warning for warning in found.warnings) == (durability in ("rdb", "volatile"))


def test_a_server_that_evicts_is_unfit_and_says_so(tmp_path: Path) -> None:
    with kept(tmp_path, *EVERY_WRITE, "--maxmemory-policy", "volatile-ttl") as found:
        assert "volatile-ttl" in (found.unfit() or "")


def test_a_server_that_does_not_tell_gets_no_more_credit_than_it_shows(tmp_path: Path) -> None:
    with kept(tmp_path, *EVERY_WRITE, "--rename-command", "CONFIG", "") as found:
        assert found.durability == "everysec"


def test_a_replica_that_has_lost_its_primary_is_warned_of(tmp_path: Path) -> None:
    with valkey(tmp_path, *EVERY_WRITE) as url, connect(url, 5) as client:
        client.execute_command("REPLICAOF", "127.0.0.1", free_ports(1)[0])
        assert any("has lost its primary" in warning for warning in keeping(client).warnings)


def test_a_server_that_loads_its_file_does_not_keep_nothing(tmp_path: Path) -> None:
    options = *EVERY_WRITE, "--enable-debug-command", "yes", "--key-load-delay", "500"
    with valkey(tmp_path, *options) as url, connect(url, 60) as client, ThreadPoolExecutor(1) as pool:
        with client.pipeline(transaction=False) as calls:
            for i in range(4096):  # others are answered every 1,024 commands
                calls.set(f"k{i}", b"")
            calls.execute()
        loaded = pool.submit(client.execute_command, "DEBUG", "LOADAOF")
        said = set()
        while not loaded.done():
            try:
                assert keeping(client).unfit() is None
            except StoreUnavailable as error:
                said.add(str(error))
        assert (loaded.result(), said) == (b"OK", {"the store is still loading its data"})


def test_a_cluster_without_slots_does_not_answer(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    node = Node(tmp_path / "node", port, "--cluster-enabled", "yes")
    try:
        until(lambda: node.says("PING") is not None)
        with (
            connect(f"redis+cluster://127.0.0.1:{port}", 5) as client,
            pytest.raises(StoreUnavailable, match="no server that answers"),
        ):
            keeping(client)
    finally:
        node.kill()


def test_a_full_server_is_not_writable(tmp_path: Path) -> None:
    with valkey(tmp_path, "--maxmemory", "1") as url, connect(url, 5) as client, pytest.raises(StoreUnavailable):
        check_writable(client)


@each(
    "error",
    [
        redis.ConnectionError("Error 2 connecting to unix:///secret/store.sock. No such file."),
        redis.AuthenticationError("invalid password of secret"),
        redis.exceptions.NoPermissionError("User secret has no permissions"),
        redis.ResponseError("MISCONF Errors writing to the AOF file: secret"),
        redis.exceptions.OutOfMemoryError("command not allowed: secret"),
        redis.ResponseError("something else about secret"),
    ],
)
def test_what_clients_are_told_does_not_say_where_the_store_is_and_the_log_does(error: redis.RedisError) -> None:
    with pytest.raises(StoreUnavailable) as told, store_errors():
        raise error
    assert "secret" not in str(told.value)
    assert str(told.value).startswith("the store ")
    assert "secret" in in_full(told.value)


def test_commands_refuse_a_store_that_is_too_old_and_start_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_LEAST_VERSIONS", {"redis": (99, 0), "valkey": (99, 0)})
    monkeypatch.setattr(logging.config, "dictConfig", lambda _: None)
    assert checked_settings({"redis_url": f"unix://{tmp_path}/valkey.sock"})
    with valkey(tmp_path) as url, connect(url, 5) as client:
        with pytest.raises(StoreOutdated):
            checked_settings({"redis_url": url})
        with pytest.raises(StoreOutdated):  # also where it was exchanged while the service ran
            servers.keeping(client)
