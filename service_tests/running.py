"""A real service in a process of its own, for tests that talk to it over HTTP."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil

START_SECONDS = 120
"""Generous: the first start on a machine compiles the hashing loops."""


class Running(NamedTuple):
    """A service that answers."""

    url: str
    data_dir: Path
    process: subprocess.Popen[bytes]

    @property
    def socket(self) -> str:
        """URL of the embedded store, where the service has one."""
        return f"unix://{self.data_dir / 'store.sock'}"

    def client(self, **headers: str) -> httpx.Client:
        """A client of the service that sends these headers each time."""
        # Without certificates, which take longer to read than most tests.
        # And without compression unless asked for: a test then sees what is sent.
        headers = {"Accept-Encoding": "identity", **headers}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, verify=False)


def compiler_bytes(pid: int) -> int:
    """Memory of a process that holds the program of the compiler. Nothing is compiled without some 20 MB of it."""
    parts = psutil.Process(pid).memory_maps(grouped=False)
    return sum(part.rss for part in parts if part.path.endswith("libllvmlite.so") and not part.anonymous)


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start(
    data_dir: Path,
    *options: str,
    until: str = "/health/ready",
    program: str = "app",
    scheme: str = "http",
) -> Running:
    """Start a service and wait until `until` answers 200.

    Args:
        data_dir: of the embedded store.
        options: further command-line options.
        until: path to ask.
        program: the module to run.
        scheme: that of its address.
    """
    port = free_port()
    log = data_dir.parent / f"{data_dir.name}.{port}.log"
    # Without workers, unless a test wants some: most need none, and each takes seconds to start.
    command = [sys.executable, "-m", program, "serve", "--port", str(port), "--data-dir", str(data_dir)]
    command += ["--job-workers", "0", *options]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    running = Running(f"{scheme}://127.0.0.1:{port}", data_dir, process)
    deadline = time.monotonic() + START_SECONDS
    with running.client() as http:
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(httpx.TransportError):
                if http.get(until).status_code == 200:
                    return running
            time.sleep(0.05)
    stop(running)
    raise RuntimeError(f"the service did not come up:\n{log.read_text()}")


def stop(running: Running) -> None:
    """Stop a service as an operator would."""
    running.process.terminate()
    running.process.wait(60)


@contextmanager
def service(data_dir: Path, *options: str, program: str = "app", scheme: str = "http") -> Iterator[Running]:
    """A service for the length of a with block."""
    running = start(data_dir, *options, program=program, scheme=scheme)
    try:
        yield running
    finally:
        stop(running)
