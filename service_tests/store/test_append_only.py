from itertools import pairwise
from pathlib import Path

import pytest

from app.store import append_only
from service_tests.cases import each
from service_tests.store.written import APPENDED, boundaries, killed_store


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a real server has appended."""
    data = (killed_store(tmp_path_factory.mktemp("written")) / APPENDED).read_bytes()
    assert data.count(b"MULTI") == data.count(b"EXEC") == 2, "there are transactions, also one of a script"
    return data


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def test_a_file_as_it_was_written_is_whole(path: Path, written: bytes) -> None:
    path.write_bytes(written)
    found = append_only.read(path)
    assert found == (written.count(b"\r\n*") + 1, len(written), "SET", "", None)


def test_wherever_a_file_ends_everything_before_is_found(path: Path, written: bytes) -> None:
    """At every offset: up to the last end of a command before it, or of a transaction."""
    ends = boundaries(written)
    for cut in range(len(written)):
        path.write_bytes(written[:cut])
        found = append_only.read(path)
        whole = max(end for end in ends if end <= cut)
        assert (found.end, found.again) == (whole, None), cut
        assert bool(found.fault) == (whole != cut), cut


@pytest.mark.parametrize("zeros", [1, 7, 4096, 100_000])
def test_zeros_at_the_end_are_no_commands(path: Path, written: bytes, zeros: int) -> None:
    """As a power loss leaves them where the system had made the file longer, and not written it yet."""
    ends = boundaries(written)
    for cut in range(len(written) - 300, len(written) + 1):
        path.write_bytes(written[:cut] + bytes(zeros))
        found = append_only.read(path)
        # Where a string ends in zeros of its own, they may belong to it; none does here.
        assert (found.end, found.again) == (max(end for end in ends if end <= cut), None), cut
        assert found.fault


def test_what_is_damaged_with_whole_commands_behind_it_says_where_they_are(path: Path, written: bytes) -> None:
    ends = boundaries(written)
    for first, second in list(pairwise(ends))[:-1]:
        for at in (first, first + 1, first + 4, (first + second) // 2 - 1, second - 1):
            damaged = bytearray(written)
            damaged[at] ^= 0xFF
            path.write_bytes(damaged)
            found = append_only.read(path)
            if not found.fault:  # in the bytes of a string, which nothing vouches for here: digests do
                continue
            assert found.end == first, at
            assert found.again is not None, at
            assert first < found.again <= max(second, ends[-2]), at


def test_a_length_that_reaches_over_the_end_hides_no_commands(path: Path, written: bytes) -> None:
    at = written.index(b"$768\r\n")
    path.write_bytes(written[:at] + b"$99999999\r\n" + written[at + 6 :])
    found = append_only.read(path)
    assert found.fault == "the file ends inside a command"
    assert found.again is not None


def test_remarks_are_passed_over(path: Path, written: bytes) -> None:
    path.write_bytes(b"#TS:1700000000\r\n" + written + b"#TS:1700000001\r\n")
    found = append_only.read(path)
    assert (found.end, found.fault) == (path.stat().st_size, "")
    path.write_bytes(written + b"#TS:17000")
    assert append_only.read(path)[1::2] == (len(written), "the file ends inside a remark")


@each(
    ("text", "fault"),
    [
        (b"*0\r\n", "no command begins here"),
        (b"SET a b\r\n is no command", "no command begins here"),
        (b"*1\r\n$-1\r\n and more of this", "string 0 of a command is none"),
        (b"*1\r\n$3\r\n\0\1\2\r\n", "a command has a name that is none"),
        (b"*1\r\n$3\r\nPINGPONG and so on", "string 0 of a command is longer than it says, or shorter"),
        (b"\0" * 20, "there are only zeros"),
    ],
)
def test_what_is_no_command_is_named(path: Path, text: bytes, fault: str) -> None:
    path.write_bytes(text)
    assert append_only.read(path) == (0, 0, "", fault, None)


def test_an_empty_file_is_whole(path: Path) -> None:
    path.touch()
    assert append_only.read(path) == (0, 0, "", "", None)


def test_transactions_do_not_begin_inside_others(path: Path) -> None:
    multi, ping = b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nPING\r\n"
    path.write_bytes(ping + multi + ping + multi + ping)
    found = append_only.read(path)
    assert (found.commands, found.end, found.fault) == (1, len(ping), "a transaction begins inside another")
    assert found.again is not None
