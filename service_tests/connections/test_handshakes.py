import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from service_tests.connections.wire import connected, received
from service_tests.running import Running, service
from service_tests.servers import until
from service_tests.test_tls import certified

pytestmark = pytest.mark.nightly
# Of a process, and of connections fewer than that.
FILES, MOST = 1024, 1024 - 128


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Running]:
    """A service with HTTPS, heads of three seconds at most, and few files."""
    options = (*certified(tmp_path, "127.0.0.1").options, "--head-timeout", "3")
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, most))
    try:
        starting = service(tmp_path / "data", *options, scheme="https")
        running = starting.__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, min(4096, most)), most))
    with ExitStack() as stack:
        stack.push(starting)
        yield running


@contextmanager
def half_open(running: Running, first: bytes) -> Iterator[None]:
    """1,200 handshakes that have begun with some bytes and go no further."""
    with ExitStack() as lines:
        for _ in range(1200):
            lines.enter_context(connected(running)).sendall(first)
        yield


@pytest.mark.parametrize("first", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"], ids=["nothing", "a byte", "a head"])
def test_half_open_handshakes_keep_nobody_out_and_end(secure: Running, first: bytes) -> None:
    process = psutil.Process(secure.process.pid)
    before = process.num_fds()
    with half_open(secure, first):
        for _ in range(20):
            with secure.client() as http:
                assert http.get("/health/live").status_code == 200
        assert process.num_fds() <= before + MOST + 1
        # Left to themselves, they would have a minute.
        until(lambda: process.num_fds() <= before + 1)


def test_a_handshake_that_says_something_else_ends_at_once(secure: Running) -> None:
    began = time.monotonic()
    with connected(secure) as line:
        line.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert not received(line).startswith(b"HTTP")
    assert time.monotonic() < began + 3


def test_half_open_handshakes_do_not_hold_up_the_end_of_the_service(secure: Running) -> None:
    with half_open(secure, b"\x16"):
        secure.process.terminate()
        assert secure.process.wait(20) == 0
