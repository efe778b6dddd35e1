"""A data directory for an embedded store, and all that tests do to it from outside."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import redis

import app
from app.store import server
from app.store.disk import SOCKET_NAME
from app.store.embedded import EmbeddedStore
from service_tests.servers import STORE_PROGRAM, until

DEADLINE = 60.0
SERVICE = """
import sys, time
from pathlib import Path
from app.store.embedded import EmbeddedStore

EmbeddedStore(Path(sys.argv[1]), Path(sys.argv[2])).start()
print("started", flush=True)
time.sleep(600)
"""


def lives(pid: int) -> bool:
    """Zombies included."""
    return psutil.pid_exists(pid)


def ended(pid: int) -> bool:
    """Of an orphan: whether anybody reaps it is the affair of process 1."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


class Site:
    """A data directory, and a server program that notes the id of every process it becomes."""

    def __init__(self, home: Path) -> None:
        self.data = home / "data"
        self.notes = home / "pids"
        self.program = home / "server"
        self.helpers: list[subprocess.Popen[bytes]] = []
        self.script(f'exec "{STORE_PROGRAM}" "$@"')

    def script(self, last_line: str) -> None:
        version = f'[ "$1" = --version ] && exec "{STORE_PROGRAM}" --version'
        self.program.write_text(f'#!/bin/sh\n{version}\necho $$ >> "{self.notes}"\n{last_line}\n')
        self.program.chmod(0o700)

    def store(self) -> EmbeddedStore:
        return EmbeddedStore(self.data, self.program)

    def pids(self) -> list[int]:
        return [int(line) for line in self.notes.read_text().split()] if self.notes.exists() else []

    def run(self, *command: str | Path) -> "subprocess.Popen[bytes]":
        root = Path(app.__file__).parents[1]
        helper = subprocess.Popen([*command], cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.helpers.append(helper)
        return helper

    def killed_service(self) -> int:
        """Run a service in a process of its own, kill that; the pid of the server it leaves."""
        service = self.run(sys.executable, "-c", SERVICE, self.data, self.program)
        assert service.stdout is not None
        assert service.stdout.readline() == b"started\n"
        service.kill()
        service.wait(DEADLINE)
        # An end of file here also shows that the server does not hold the service's output open.
        assert service.stdout.read() == b""
        return self.pids()[-1]

    def foreign_server(self, *options: str) -> redis.Redis:
        """Start a server that no store has started, on the directory and socket of this site."""
        self.data.mkdir()
        socket = self.data / SOCKET_NAME
        own = ("--port", "0", "--unixsocket", str(socket), "--dir", str(self.data), "--logfile", "store.log")
        self.run(self.program, *own, *options)
        until(lambda: server.reply(socket) is not None)
        return redis.Redis.from_url(f"unix://{socket}")

    def clean(self) -> None:
        # By note for the servers whose services are dead, then by handle for those to be reaped here.
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for helper in self.helpers:
            helper.kill()
            helper.communicate()


def server_pid(client: redis.Redis) -> int:
    return int(client.info("server")["process_id"])


def reachable(url: str) -> bool:
    with redis.Redis.from_url(url) as client:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False
