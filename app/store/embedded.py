"""Embedded store: a private Redis-compatible server in the service's data directory.

Other users have no access to the directory.
"""

import logging
import os
import resource
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote

import redis
from filelock import FileLock, Timeout

from app.store import server
from app.store.data_files import cut, link_beside, make_lasting, remove_temporary, require_base, torn_end
from app.store.disk import FOLDER, SOCKET_NAME, Disk
from app.store.server import Server, StoreNotStarted, Upkeep

logger = logging.getLogger(__name__)

SOCKET_PATH_BYTES = 103  # macOS has room for 104 with the closing zero byte, Linux for 108
CHECK_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 4.0
END_SECONDS = 10.0  # how long a server may take to exit when asked to, and again when killed


class EmbeddedStore:
    """Supervisor of the embedded store's server: restarts it when it dies, and ends it with the service.

    If the service is killed, its server lives on, and the next service on the same directory adopts it. A lock in the
    directory keeps a second service out. The system releases the lock when the process that holds it ends.

    Args:
        data_dir: directory of append-only file, socket, lock and log; made with mode 0700 if it is missing.
        binary: the server program; by default the one that `find_binary` finds.
        min_free_bytes: bytes that must stay free on the disk.
    """

    def __init__(self, data_dir: Path, binary: Path | None = None, min_free_bytes: int = 0) -> None:
        self._data_dir = data_dir.expanduser().absolute()
        self._disk = Disk(self._data_dir, min_free_bytes)
        self._binary = binary
        self._stopping = Event()
        # Not bound to a thread: a service may start its store in one thread and stop it in another.
        self._lock = FileLock(self._data_dir / "lock", timeout=0, thread_local=False, is_singleton=False)
        self._link: Path | None = None
        self._server: Server | None = None
        self._upkeep: Upkeep | None = None
        self._supervisor: Thread | None = None

    @property
    def url(self) -> str:
        """URL for `redis.Redis.from_url`, in this and other processes, while the store runs.

        Raises:
            StoreNotStarted: the store is not running.
        """
        if not self._lock.is_locked:
            raise StoreNotStarted(f"The embedded store in {self._data_dir} is not running.")
        return f"unix://{quote(str(self._socket))}"

    def reachable_url(self) -> str:
        """Return the URL of the server that another process runs in the directory.

        Raises:
            StoreNotStarted: no server listens there.
        """
        if server.reply(self._socket) is None:
            raise StoreNotStarted(f"No service runs on {self._data_dir}: start one, or set REDIS_URL.")
        return f"unix://{quote(str(self._socket))}"

    def start(self) -> None:
        """Lock the directory, and adopt or start its server, which answers with all its data once this returns.

        Raises:
            StoreNotStarted: the program is too old, the directory is not usable or in use, files are limited in size,
                or no server can be started or adopted.
        """
        if self._lock.is_locked:
            raise StoreNotStarted(f"The embedded store in {self._data_dir} is already running.")
        program = server.find_binary(self._binary)
        server.check_program(program)
        _require_files_of_any_size()
        self._stopping.clear()
        self._take_directory()
        try:
            self._bring_up(program)
            self._supervisor = Thread(target=self._supervise, args=(program,), name="store", daemon=True)
            self._supervisor.start()
        except BaseException:
            self.stop()
            raise

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Lock the directory during a with block, with no server running in it.

        Raises:
            StoreNotStarted: the directory is not usable or in use, or a server runs there.
        """
        self._take_directory()
        try:
            if server.reply(self._socket) is not None:
                raise StoreNotStarted(f"A server runs in {self._data_dir}: start a service there, and stop it.")
            with server.only_one(self._data_dir):
                yield
        finally:
            self.stop()

    def stop(self) -> None:
        """End the server, adopted or not, and free the directory. Nothing happens if the store is not running."""
        # Stop the supervisor first: it would restart the server.
        self._stopping.set()
        if self._supervisor is not None:
            self._supervisor.join()
            self._supervisor = None
        if self._server is not None:
            _end(self._server)
            self._server = None
        if self._link is not None:
            shutil.rmtree(self._link.parent, ignore_errors=True)  # removes the link, not its target
            self._link = None
        self._lock.release()

    def __enter__(self) -> "EmbeddedStore":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _socket(self) -> Path:
        """Path of the server's socket, through a short symbolic link if the path is too long.

        The link exists until `stop`; an object that only uses `reachable_url` keeps it, as it may be needed again.
        """
        if self._link is None and len(os.fsencode(self._data_dir / SOCKET_NAME)) > SOCKET_PATH_BYTES:
            # `mkdtemp` makes a new directory that only this user may enter.
            self._link = Path(tempfile.mkdtemp(prefix="bochner-")) / "data"
            self._link.symlink_to(self._data_dir)
        return (self._link or self._data_dir) / SOCKET_NAME

    def _take_directory(self) -> None:
        try:
            make_lasting(self._data_dir)
            if not os.access(self._data_dir, os.R_OK | os.W_OK | os.X_OK):
                raise StoreNotStarted(f"The data directory {self._data_dir} is not writable.")
            make_private(self._data_dir)
            self._lock.acquire()
            make_lasting(self._data_dir / FOLDER)  # the server would create the folder without syncing its name
        except Timeout as error:
            said = f"Another service uses the data directory {self._data_dir}"
            raise StoreNotStarted(f"{said}: stop it, or name another directory (BOCHNER_DATA_DIR).") from error
        except OSError as error:
            raise StoreNotStarted(f"The data directory {self._data_dir} cannot be used: {error.strerror}.") from error

    def _bring_up(self, program: Path) -> None:
        self._server = server.adopt(self._socket, self._data_dir, self._stopping)
        if self._server is None:
            require_base(self._data_dir)
            remove_temporary(self._data_dir)
            try:
                self._server = self._start(program)
            except StoreNotStarted:
                damaged = None if self._stopping.is_set() else torn_end(self._data_dir)
                if damaged is None:
                    raise
                kept = cut(damaged)
                logger.warning("%s. It was cut off there; what was cut off is %s", damaged, kept or "not kept")
                self._server = self._start(program)
        self._upkeep = Upkeep(self._disk, self._socket, self._server.pid, self._server.writes)

    def _start(self, program: Path) -> Server:
        self._server = started = server.spawn(program, self._data_dir, self._disk.takes_writes())
        server.wait_until_ready(started, self._socket, self._stopping)
        if refused := started.refusals():
            link_beside(self._data_dir)  # before the server rewrites its files without the refused data
            logger.error("the files of the store are damaged, and kept beside: its server refuses %s", refused)
            with redis.Redis(unix_socket_path=str(self._socket)) as client, suppress(redis.RedisError):
                client.bgrewriteaof()  # otherwise the next start would find the damage again
        return started

    def _supervise(self, program: Path) -> None:
        pause = CHECK_SECONDS
        while not self._stopping.wait(pause):
            if self._server is not None and not self._server.gone():
                pause = CHECK_SECONDS
                if self._upkeep is not None and self._has_lost_only_its_socket(self._server, self._upkeep.written):
                    logger.warning("the socket of the store's server is gone; ending the server")
                    _end(self._server)
                elif self._upkeep is not None:
                    self._upkeep.look()
                continue
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            logger.warning("the store's server is gone; starting it again")
            try:
                self._bring_up(program)
            except Exception as error:
                if not self._stopping.is_set():
                    logger.error("%s; again in %.1f s", error, pause, exc_info=not isinstance(error, StoreNotStarted))

    def _has_lost_only_its_socket(self, running: Server, written: int) -> bool:
        """Return whether a server has lost its socket but no byte that it has written, so that a restart is safe."""
        with suppress(OSError):
            is_whole = self._disk.is_served(str(running.pid), running.pid) and self._disk.size() >= written
            return is_whole and not (self._data_dir / SOCKET_NAME).exists()
        return False


def _require_files_of_any_size() -> None:
    """Raise StoreNotStarted if the system limits the size of files: a server ends at each write beyond the limit."""
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if most != resource.RLIM_INFINITY:
        raise StoreNotStarted(
            f"A file may have no more than {most} bytes here, and the file of the store may grow to any size: lift the "
            "limit with `ulimit -f unlimited`, or with LimitFSIZE=infinity in a unit of systemd."
        )


def _end(running: Server) -> None:
    for end, complaint in ((running.ask_to_end, "does not exit; killing it"), (running.kill, "has survived its kill")):
        end()
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            if running.gone():
                return
            time.sleep(0.02)
        logger.error("the store's server, process %d, %s", running.pid, complaint)


_OURS = {"lock", "server.lock", "store.log", "store.sock", "appendonlydir", "appendonly.aof"}
_NOTHING = {"lost+found"}  # content of a new file system


def make_private(data_dir: Path) -> None:
    """Remove the access of other users to a directory.

    A directory owned by another user may be shared through its group, as container volumes are, and stays as it is:
    only the store's user can read the files that the store writes there.

    Raises:
        StoreNotStarted: every user may write in another user's directory, or an own directory holds other things, whose
            users would be locked out.
    """
    found = data_dir.stat()
    open_to = stat.S_IMODE(found.st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    if not open_to:
        return
    mode = f"{stat.S_IMODE(found.st_mode):o}"
    if found.st_uid != os.geteuid():
        if open_to & stat.S_IWOTH:
            raise StoreNotStarted(
                f"Every user may write in the data directory {data_dir} (mode {mode}), which is not this user's: "
                "close it, or name a directory inside of it, which is then made."
            )
        return
    there = {path.name for path in data_dir.iterdir()}
    if there - _NOTHING and not there & _OURS:
        raise StoreNotStarted(
            f"The data directory {data_dir} is open to other users (mode {mode}) and holds other things: close it with "
            f"`chmod 700 {data_dir}`, or name a directory of its own."
        )
    data_dir.chmod(stat.S_IRWXU)
    logger.warning("the data directory %s was open to other users (mode %s); it is closed now", data_dir, mode)
