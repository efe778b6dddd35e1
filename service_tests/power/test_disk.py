"""The disk whose power can be cut: what was synced stays, what was not may go, and names are not bytes."""

import shutil
import subprocess
import sys
from random import Random

import pytest

from service_tests.power.disk import Disk, Loss

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="open files have paths in /proc on Linux only")

TOOLS = """
import os
def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
def write(path, content, mode="wb", synced=True):
    with open(path, mode) as file:
        file.write(content)
        file.flush()
        if synced:
            os.fdatasync(file.fileno())
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Disk:
    return Disk(tmp_path_factory.mktemp("disk"))


def left(disk: Disk, script: str, loss: Loss, seed: int = 1) -> dict[str, bytes]:
    """What a power loss leaves of what a process did; files by name, without directories."""
    with subprocess.Popen([sys.executable, "-S", "-c", TOOLS + script], cwd=disk.root, env=disk.environment) as process:
        assert process.wait(60) == 0
    disk.lose_power(loss, Random(seed))
    files = [path for path in disk.root.rglob("*") if path.is_file()]
    content = {path.relative_to(disk.root).as_posix(): path.read_bytes() for path in files}
    for path in disk.root.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    disk.settle()
    return content


CASES = {
    "a file whose name was not synced": ("write('a', b'1')", {}, {"a": b"1"}),
    "a file that was not synced": ("write('a', b'1', synced=False); sync('.')", {"a": b""}, {"a": b""}),
    "both synced": ("write('a', b'1'); sync('.')", {"a": b"1"}, {"a": b"1"}),
    "what is added later": (
        "write('a', b'1'); sync('.'); write('a', b'2', 'ab'); write('a', b'3', 'ab', False)",
        {"a": b"12"},
        {"a": b"12"},
    ),
    "what is written over": (
        "write('a', b'123'); sync('.'); write('a', b'x', 'r+b', False); write('b', b'')",
        {"a": b"123"},
        {"a": b"123", "b": b""},
    ),
    "what is written over and synced": (
        "write('a', b'123'); sync('.'); write('a', b'x', 'r+b'); os.truncate('a', 2); write('a', b'y', 'ab')",
        {"a": b"x2y"},
        {"a": b"x2y"},
    ),
    "a file that was cut": ("write('a', b'123'); sync('.'); os.truncate('a', 1)", {"a": b"123"}, {"a": b"123"}),
    "a rename": (
        "write('a', b'1'); write('b', b'2'); sync('.'); os.rename('b', 'a')",
        {"a": b"1", "b": b"2"},
        {"a": b"2"},
    ),
    "a rename that was synced": (
        "write('a', b'1'); write('b', b'2'); os.replace('b', 'a'); sync('.')",
        *2 * [{"a": b"2"}],
    ),
    "a file that was deleted": ("write('a', b'1'); sync('.'); os.unlink('a')", {"a": b"1"}, {}),
    "one that has its inode": (
        "write('a', b'1'); sync('.'); os.unlink('a'); write('c', b'3')",
        {"a": b"1"},
        {"c": b"3"},
    ),
    "a directory in a directory": (
        "os.mkdir('d'); write('d/a', b'1'); sync('d')",
        {},
        {"d/a": b"1"},
    ),
}


@pytest.mark.parametrize(("script", "synced", "now"), CASES.values(), ids=CASES)
def test_what_was_synced_stays(shared: Disk, script: str, synced: dict[str, bytes], now: dict[str, bytes]) -> None:
    assert left(shared, script, Loss("synced", "cut")) == synced
    assert left(shared, script, Loss("now", "cut")) == now


def test_entries_are_of_any_moment_since_the_last_sync(shared: Disk) -> None:
    script = "write('a', b''); sync('.'); write('b', b''); os.rename('a', 'c')"
    seen = {tuple(sorted(left(shared, script, Loss("between", "cut"), seed))) for seed in range(8)}
    assert {("a",), ("a", "b"), ("b", "c")} <= seen


def test_the_end_of_a_file_may_be_torn_or_zeros(shared: Disk) -> None:
    script = "write('a', b'12'); sync('.'); write('a', b'34', 'ab', False)"
    assert left(shared, script, Loss("synced", "zeros")) == {"a": b"12\0\0"}
    seen = {left(shared, script, Loss("synced", "torn"), seed)["a"] for seed in range(8)}
    assert seen == {b"12", b"123", b"1234"}


def test_a_disk_is_full_for_a_while(shared: Disk) -> None:
    script = "print(os.statvfs('.').f_bavail > 0); write('a', b'1')"
    with shared.full(), pytest.raises(AssertionError):
        left(shared, script, Loss("now", "cut"))
    (shared.root / "a").unlink()
    assert left(shared, script, Loss("now", "cut")) == {"a": b"1"}
    with shared.full():
        assert left(shared, "assert os.statvfs('.').f_bavail == 0", Loss("now", "cut")) == {}
