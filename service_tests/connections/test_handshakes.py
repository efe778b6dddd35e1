import resource
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from service_tests.connections.wire import connected
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


def test_half_open_handshakes_keep_nobody_out_and_end(secure: Running) -> None:
    process = psutil.Process(secure.process.pid)
    before = process.num_fds()
    with ExitStack() as lines:
        for _ in range(1200):  # handshakes that have begun and go no further
            lines.enter_context(connected(secure)).sendall(b"\x16")
        for _ in range(20):
            with secure.client() as http:
                assert http.get("/health/live").status_code == 200
        assert process.num_fds() <= before + MOST + 1
        # Left to themselves, they would have a minute.
        until(lambda: process.num_fds() <= before + 1)
