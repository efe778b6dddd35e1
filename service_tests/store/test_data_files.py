"""Files of a store that a real server has written, damaged, and what a start makes of them."""

import os
import re
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import redis

from app.store import identity
from app.store.connection import connect
from app.store.data_files import _NAMES
from app.store.disk import DAMAGED, FOLDER, MANIFEST, cut_tails
from app.store.embedded import EmbeddedStore
from app.store.errors import StoreUnavailable
from app.store.server import StoreNotStarted
from app.store.servers import keeping
from service_tests.cases import with_nightly
from service_tests.servers import EVERY_WRITE, STORE_PROGRAM, until, valkey

SCRIPT = "redis.call('SET', KEYS[1], 'a') redis.call('SET', KEYS[2], 'b')"
BASE, APPENDED = "appendonly.aof.1.base.rdb", f"{FOLDER}/appendonly.aof.1.incr.aof"


def boundaries(data: bytes) -> list[int]:
    """Where what counts whole or not at all ends: a command, or a transaction. Read in another way than the app's."""
    ends, at, inside = [0], 0, False
    while at < len(data):
        words, at = _words(data, at)
        inside = words[0] == b"MULTI" or (inside and words[0] != b"EXEC")
        if not inside:
            ends.append(at)
    assert all(first < second for first, second in pairwise(ends))
    return ends


def _words(data: bytes, at: int) -> tuple[list[bytes], int]:
    end = data.index(b"\r\n", at)
    n, at, words = int(data[at + 1 : end]), end + 2, []
    for _ in range(n):
        end = data.index(b"\r\n", at)
        length = int(data[at + 1 : end])
        words.append(data[end + 2 : end + 2 + length])
        at = end + 2 + length + 2
    return words, at


WROTE = re.compile(rb"(?:SET|ZADD|HSET|HMSET|XADD)\r\n\$\d+\r\n([^\r]+)", re.IGNORECASE)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a killed server that had written commands of every sort: short, long, and transactions."""
    directory = tmp_path_factory.mktemp("original")
    with valkey(directory, *EVERY_WRITE) as url, redis.Redis.from_url(url) as client:
        identity.put(client, identity.Mark(id="original", state="found"))
        client.set("bochner:first", bytes(range(256)) * 3)
        client.zadd("bochner:names", {"one": 0, "two": 0})
        client.pipeline(transaction=True).set("bochner:one", b"1").set("bochner:two", b"2").execute()
        client.set("bochner:short", b"x", ex=10_000)
        client.eval(SCRIPT, 2, "bochner:a", "bochner:b")
        client.hset("bochner:{job:1}:record", mapping={"state": "queued", "id": "1"})
        client.xadd("bochner:jobs:queue", {"job": "1"})
        client.set("bochner:last", b"")
        os.kill(int(client.info("server")["process_id"]), signal.SIGKILL)
    return directory


@pytest.fixture
def data(original: Path, tmp_path: Path) -> Path:
    """A copy of it to be damaged."""
    shutil.copytree(original / FOLDER, tmp_path / "data" / FOLDER)
    (tmp_path / "data").chmod(0o700)
    return tmp_path / "data"


def keys(data: Path) -> set[bytes]:
    """The keys that a store has when it is started on a directory."""
    with EmbeddedStore(data, STORE_PROGRAM) as store, redis.Redis.from_url(store.url) as client:
        return set(client.scan_iter())


def written(appended: bytes) -> set[bytes]:
    return set(WROTE.findall(appended))


def command(name: str, data: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "app", name, "--data-dir", str(data), *options]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("back", "zeros"), with_nightly([(9, 0), (1, 4096)], [(n, z) for n in (1, 40, 300) for z in (0, 7)])
)
def test_a_torn_end_is_cut_off_at_the_start_and_kept_and_told(
    data: Path, back: int, zeros: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = data / APPENDED
    appended = path.read_bytes()
    torn = appended[:-back] + bytes(zeros)
    path.write_bytes(torn)
    end = max(one for one in boundaries(appended) if one <= len(appended) - back)
    assert keys(data) == written(appended[:end])
    kept = cut_tails(data)
    if torn == appended[:end]:
        assert not kept
        return
    assert path.read_bytes()[:end] == appended[:end]
    assert [one.read_bytes() for one in kept] == [torn[end:]]
    assert kept[0].stat().st_mode & 0o077 == 0
    assert f"damaged at byte {end}" in caplog.text
    assert str(kept[0]) in caplog.text


def test_damage_in_the_middle_stops_the_start_and_names_the_command_that_helps(data: Path) -> None:
    path = data / APPENDED
    appended = path.read_bytes()
    first, second = list(pairwise(boundaries(appended)))[2]
    damaged = appended[:first] + bytes(second - first) + appended[second:]
    path.write_bytes(damaged)
    with pytest.raises(StoreNotStarted, match=rf"byte {first}.*bochner check.*bochner repair"):
        EmbeddedStore(data, STORE_PROGRAM).start()
    assert path.read_bytes() == damaged, "nothing is changed"
    looked = command("check", data)
    assert looked.returncode == 1
    assert f"damaged at byte {first}: there are only zeros; the next whole command begins at byte {second}" in (
        looked.stdout
    )
    tried = command("repair", data, "--dry-run")
    assert f"It would be cut off there, and the {len(damaged) - first} bytes cut off kept beside it." in tried.stdout
    assert path.read_bytes() == damaged
    mended = command("repair", data)
    assert mended.returncode == 0, mended.stderr
    assert f"{APPENDED.rpartition('/')[2]}.cut-at-{first}" in mended.stdout
    assert path.read_bytes() + cut_tails(data)[0].read_bytes() == damaged
    assert command("check", data).returncode == 0
    assert keys(data) == written(appended[:first])


@pytest.mark.parametrize("name", ["ZADD", "MULTI", "EXEC", "HSET"])
def test_a_flipped_bit_in_the_name_of_a_command_is_found_and_cut(data: Path, name: str) -> None:
    path = data / APPENDED
    appended = path.read_bytes()
    at = appended.index(f"\r\n{name}\r\n".encode()) + 2
    damaged = bytearray(appended)
    damaged[at] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(StoreNotStarted, match=r"a command has a name that is none.*bochner repair"):
        EmbeddedStore(data, STORE_PROGRAM).start()
    assert path.read_bytes() == damaged, "nothing is changed"
    assert command("repair", data).returncode == 0
    assert keys(data) == written(appended[: max(one for one in boundaries(appended) if one <= at)])


def test_every_command_that_changes_data_is_known(tmp_path: Path) -> None:
    with valkey(tmp_path) as url, redis.Redis.from_url(url) as client:
        found = client.execute_command("COMMAND LIST", "FILTERBY", "ACLCAT", "write")
    assert {one.upper().partition(b"|")[0] for one in found} <= _NAMES


def test_what_the_server_refuses_of_its_file_is_told_and_kept(data: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = data / APPENDED
    appended = path.read_bytes()
    damaged = appended.replace(b"$1\r\n0\r\n$3\r\none", b"$1\r\np\r\n$3\r\none")
    assert damaged != appended
    path.write_bytes(damaged)
    with EmbeddedStore(data, STORE_PROGRAM) as store, connect(store.url, 5) as client:
        assert keeping(client).warnings == [f"{path.name}{DAMAGED} is damaged", f"{BASE}{DAMAGED} is damaged"][::-1]
        until(lambda: not path.exists())
    assert "its server refuses" in caplog.text
    assert Path(f"{path}{DAMAGED}").read_bytes() == damaged
    looked = command("check", data)
    assert (looked.returncode, looked.stdout.count("refuses a part of it")) == (1, 2)
    for kept in cut_tails(data):
        kept.unlink()
    assert keys(data)
    assert not cut_tails(data), "the server has written its files anew"


def test_files_that_go_away_while_the_store_runs_are_missed(data: Path) -> None:
    """So are those that others take the place of."""
    with EmbeddedStore(data, STORE_PROGRAM) as store, connect(store.url, 5) as client:
        for away in (data / FOLDER, data / FOLDER / MANIFEST):
            assert keeping(client).warnings == []
            away.rename(data / "gone")
            with pytest.raises(StoreUnavailable, match="cannot be looked at: No such file"):
                keeping(client)
            (data / "gone").rename(away)
        (data / FOLDER).rename(data / "gone")
        shutil.copytree(data / "gone", data / FOLDER)
        with pytest.raises(StoreUnavailable, match="other files, or less of them, lie in the place"):
            keeping(client)
        looked = command("check", data)
        assert (looked.returncode, "other files" in looked.stderr) == (1, True), (
            "to a process that never saw the others"
        )
        store.stop()
        store.start()
        for _ in range(3):
            assert keeping(client).warnings == [], "the server writes there now"
            client.bgrewriteaof()
            until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
        client.set("new", "value")
        appended = max((data / FOLDER).glob("*.incr.aof"), key=lambda path: path.stat().st_mtime)
        os.truncate(appended, 0)
        with pytest.raises(StoreUnavailable, match="or less of them"):
            keeping(client)
        looked = command("check", data)
        assert (looked.returncode, "or less of them" in looked.stderr) == (1, True)


def test_files_without_their_manifest_are_no_empty_store(data: Path) -> None:
    before = written((data / APPENDED).read_bytes())
    (data / FOLDER / MANIFEST).unlink()
    with pytest.raises(StoreNotStarted, match=f"{MANIFEST}.*would start empty.*bochner repair --data-dir {data}"):
        EmbeddedStore(data, STORE_PROGRAM).start()
    assert not (data / FOLDER / MANIFEST).exists()
    assert "would be written anew" in command("repair", data, "--dry-run").stdout
    assert not (data / FOLDER / MANIFEST).exists()
    mended = command("repair", data)
    assert "was written anew" in mended.stdout, mended.stderr
    assert keys(data) == before


def test_a_first_start_that_was_cut_short_leaves_nothing_to_lose(data: Path) -> None:
    """A server writes an empty base, then the manifest."""
    (data / FOLDER / MANIFEST).unlink()
    (data / APPENDED).write_bytes(b"")
    assert keys(data) == set()


def test_a_file_that_is_missing_is_named(data: Path) -> None:
    (data / APPENDED).unlink()
    with pytest.raises(StoreNotStarted, match=r"misses appendonly.aof.1.incr.aof"):
        EmbeddedStore(data, STORE_PROGRAM).start()


@pytest.mark.parametrize("at", with_nightly([-1, None], [1, 20, -9]))
def test_a_base_that_is_damaged_is_never_cut(data: Path, at: int | None) -> None:
    """Nor is one that is empty taken for a store that is."""
    path = data / FOLDER / BASE
    damaged = bytearray(path.read_bytes()[: None if at else 0])
    if at:
        damaged[at] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(StoreNotStarted):
        EmbeddedStore(data, STORE_PROGRAM).start()
    checked = command("check", data)
    assert (checked.returncode, f"{BASE}: {len(damaged)} bytes, a snapshot; damaged" in checked.stdout) == (1, True)
    ended = command("repair", data)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert path.read_bytes() == damaged


def test_a_store_that_runs_is_not_repaired(data: Path) -> None:
    with EmbeddedStore(data, STORE_PROGRAM):
        ended = command("repair", data)
        assert ended.returncode == 1
        assert "Another service uses" in ended.stderr
        assert command("check", data).returncode == 0
