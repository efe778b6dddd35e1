"""Servers that tests start by hand: stores kept otherwise than the embedded one, and a wire that can be cut."""

import hashlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import redis

from app.store.server import find_binary

STORE_PROGRAM = find_binary(Path(named) if (named := os.environ.get("BOCHNER_STORE_BINARY")) else None)
"""The server that tests start; services that they start take the same."""
VOLATILE = ("--save", "", "--appendonly", "no")
EVERY_WRITE = ("--appendonly", "yes", "--appendfsync", "always")


def until(true: Callable[[], object]) -> None:
    """Wait for a condition, but not for ever: so long that a busy machine makes no test fail."""
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def replicas_to_write(url: str) -> str:
    """How many replicas a server needs to take writes: 1, which it has not, where its service refuses all."""
    with redis.Redis.from_url(url, decode_responses=True) as store:
        return str(store.config_get("min-replicas-to-write")["min-replicas-to-write"])


@contextmanager
def valkey(directory: Path, *options: str) -> Iterator[str]:
    """A server on a unix socket in the directory, for the length of a with block; gives its URL."""
    path = directory / "valkey.sock"
    command = [str(STORE_PROGRAM), "--port", "0", "--unixsocket", str(path), "--dir", str(directory), *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until(lambda: answers(f"unix://{path}") or process.poll() is not None)
        assert process.poll() is None, f"the server refuses {options}"
        yield f"unix://{path}"
    finally:
        process.kill()
        process.wait(10)


def access_list(directory: Path, password: str) -> Path:
    """The list of who gets into the composed service's store, with the hash of a password in its place."""
    rules = (Path(__file__).parent.parent / "docker" / "users.acl").read_text()
    if STORE_PROGRAM.name == "redis-server":  # 7.0 knows no such command, as docs/how-to/deploy.md says
        rules = rules.replace(" +client|setinfo", "")
    path = directory / "users.acl"
    path.write_text(rules.replace("SHA256", hashlib.sha256(password.encode()).hexdigest()))
    return path


def answers(url: str) -> bool:
    """Whether a store answers there."""
    with redis.Redis.from_url(url, retry=None) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


class Wire:
    """A TCP address that leads to a server, and loses the reply to one command or request when told to.

    Args:
        target: URL of the server, unix:// or tcp://.
    """

    def __init__(self, target: str) -> None:
        self._scheme, _, self._address = target.partition("://")
        self._command: bytes | None = None
        self._meanwhile: Callable[[], object] = int
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_reply_to(self, command: bytes, meanwhile: Callable[[], object] = int) -> None:
        """Cut the connection once, after the server has answered the next command that contains these bytes.

        What happens meanwhile has happened before anybody sees that it is cut.
        """
        self._command, self._meanwhile = command, meanwhile

    def close(self) -> None:
        """Take no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        """One command, one reply, over and over, as client libraries do it."""
        with near, suppress(OSError), self._connected() as far:
            awaited = threading.Event()

            def forward() -> None:
                with suppress(OSError):
                    while sent := near.recv(1 << 20):
                        if self._command is not None and self._command in sent:
                            awaited.set()
                        far.sendall(sent)
                with suppress(OSError):
                    far.shutdown(socket.SHUT_RDWR)

            threading.Thread(target=forward, daemon=True).start()
            try:
                while reply := far.recv(1 << 20):
                    # A script that the server does not know yet was not carried out.
                    if awaited.is_set() and not reply.startswith(b"-NOSCRIPT"):
                        self._command = None
                        self.lost += 1
                        self._meanwhile()
                        return
                    near.sendall(reply)
            finally:
                # Closing alone would not wake the thread that waits for what comes from there.
                near.shutdown(socket.SHUT_RDWR)

    def _connected(self) -> socket.socket:
        if self._scheme == "tcp":
            host, _, port = self._address.rpartition(":")
            return socket.create_connection((host, int(port)))
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(self._address)
        except OSError:
            far.close()
            raise
        return far


@contextmanager
def wire(url: str) -> Iterator[Wire]:
    """A wire to the store at a unix:// URL."""
    made = Wire(url)
    try:
        yield made
    finally:
        made.close()
