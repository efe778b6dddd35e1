"""A cluster, and a primary with replicas and sentinels, of the server that the embedded store runs."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import redis

from service_tests.servers import STORE_PROGRAM, until

SLOTS = 16384
_KEPT = ("--appendonly", "yes", "--save", "", "--repl-diskless-sync-delay", "0")
_CLUSTERED = (
    # After so long a silent node is taken for dead: longer than a busy machine makes one wait.
    *("--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"),
    *("--cluster-replica-validity-factor", "0", *_KEPT),
)


def free_ports(n: int) -> list[int]:
    """Ports of nodes; each takes the one that is 10000 higher for the cluster itself."""
    found: list[int] = []
    candidates = iter(range(21000 + os.getpid() * 37 % 20000, 65000 - 10000))
    while len(found) < n:
        port = next(candidates)
        with (
            suppress(OSError),
            socket.create_server(("127.0.0.1", port)),
            socket.create_server(("127.0.0.1", port + 10000)),
        ):
            found.append(port)
    return found


class Node:
    """A server of its own directory and port, which may be killed, stopped and started again."""

    def __init__(self, directory: Path, port: int, *options: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port, self._directory = port, directory
        self._options = [*("--port", str(port)), *("--bind", "127.0.0.1"), *("--dir", str(directory)), *options]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the server, again if it was killed."""
        log = (self._directory / "log").open("ab")
        self._process = subprocess.Popen([str(STORE_PROGRAM), *self._options], stdout=log)
        log.close()

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal; a killed server is reaped."""
        if self._process is not None:
            self._process.send_signal(number)
            if number == signal.SIGKILL:
                self._process.wait(30)

    def client(self) -> redis.Redis:
        """A client of this server alone."""
        return redis.Redis.from_url(f"redis://127.0.0.1:{self.port}", socket_timeout=5, retry=None)

    def says(self, *command: Any) -> Any:
        """The answer to a command; None if there is none."""
        with self.client() as client, suppress(redis.RedisError):
            return client.execute_command(*command)
        return None

    @property
    def role(self) -> str:
        """What it is: `master`, `slave`, or nothing while it does not answer."""
        answer = self.says("ROLE")
        return answer[0].decode() if answer else ""


class Pair:
    """A primary and its replica, which somebody may put in its place."""

    def __init__(self, home: Path) -> None:
        ports = free_ports(2)
        self.primary, self.replica = (Node(home / str(port), port, *_KEPT) for port in ports)
        until(lambda: self.primary.says("PING") and self.replica.says("PING"))
        self.settle()

    @property
    def url(self) -> str:
        """The URL of the primary."""
        return f"redis://127.0.0.1:{self.primary.port}/0"

    def settle(self) -> None:
        """Have the one follow the other, and wait until it does, and has on disk what it was sent."""
        self.replica.says("REPLICAOF", "127.0.0.1", self.primary.port)
        until(lambda: b"state=online" in _raw(self.primary, "INFO", "replication"))
        until(lambda: b"aof_rewrite_in_progress:0" in _raw(self.replica, "INFO", "persistence"))

    def fail_over(self) -> None:
        """Kill the primary, and put the killed replica in its place, with what that has on disk, which follows nobody.

        The killed primary comes back as its replica.
        """
        self.primary.kill()
        self.primary, self.replica = self.replica, self.primary
        for node in (self.primary, self.replica):
            node.start()
        until(lambda: self.primary.says("PING") and self.replica.says("PING"))
        self.settle()

    def close(self) -> None:
        """End both."""
        for node in (self.primary, self.replica):
            node.kill(signal.SIGCONT)
            node.kill()


class Cluster:
    """Primaries with a replica each."""

    def __init__(self, home: Path, primaries: int = 3, replicas: int = 1, *options: str) -> None:
        self._home, self.n = home, primaries
        ports = free_ports(primaries * (1 + replicas))
        self.nodes = [Node(home / str(port), port, *_CLUSTERED, *options) for port in ports]
        until(lambda: all(node.says("PING") for node in self.nodes))
        for i, node in enumerate(self.nodes[:primaries]):
            node.says("CLUSTER", "ADDSLOTSRANGE", SLOTS * i // primaries, SLOTS * (i + 1) // primaries - 1)
            node.says("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        for node in self.nodes[1:]:
            self.nodes[0].says("CLUSTER", "MEET", "127.0.0.1", node.port)
        until(lambda: all(len(self._known(node)) == len(ports) for node in self.nodes))
        for i, node in enumerate(self.nodes[primaries:]):
            node.says("CLUSTER", "REPLICATE", self.nodes[i % primaries].says("CLUSTER", "MYID"))
        self.settle(replicas)

    @property
    def url(self) -> str:
        """The URL of the store, by some of its nodes."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[:: self.n] or self.nodes)

    def primaries(self) -> list[Node]:
        """The nodes that take writes."""
        return [node for node in self.nodes if node.role == "master"]

    def settle(self, replicas: int = 1) -> None:
        """Wait until all slots are served, and each primary is followed by so many replicas."""
        until(lambda: self.is_settled(replicas))

    def may_fail_over(self, may: bool) -> None:
        """Whether replicas take the place of primaries that are lost."""
        for node in self.nodes:
            node.says("CONFIG", "SET", "cluster-replica-no-failover", "no" if may else "yes")

    def close(self) -> None:
        """End every node."""
        for node in self.nodes:
            node.kill(signal.SIGCONT)
            node.kill()

    def is_settled(self, replicas: int = 1) -> bool:
        """Whether all slots are served, and each primary is followed by so many replicas."""
        primaries = self.primaries()
        if len(primaries) != self.n:
            return False
        if any(b"cluster_state:ok" not in _raw(node, "CLUSTER", "INFO") for node in self.nodes):
            return False
        followed = [_raw(node, "INFO", "replication") for node in primaries]
        return all(one.count(b"state=online") == replicas for one in followed)

    @staticmethod
    def _known(node: Node) -> dict[str, str]:
        """What a node knows of each, by id; of itself, by `myself`."""
        lines = _raw(node, "CLUSTER", "NODES").decode().splitlines()
        return {("myself" if "myself" in line else line.split()[0]): line for line in lines if "handshake" not in line}


class Sentinels:
    """A primary with replicas, and three sentinels that watch over them."""

    service = "bochner-store"

    def __init__(self, home: Path, replicas: int = 1) -> None:
        ports = free_ports(1 + replicas + 3)
        self.servers = [Node(home / str(ports[0]), ports[0], *_KEPT)]
        for port in ports[1 : 1 + replicas]:
            self.servers.append(Node(home / str(port), port, *_KEPT, "--replicaof", f"127.0.0.1 {ports[0]}"))
        until(lambda: all(node.says("PING") for node in self.servers))
        self.sentinels = [self._sentinel(home / str(port), port, ports[0]) for port in ports[1 + replicas :]]
        until(lambda: all(self._sees(node, replicas) for node in self.sentinels))

    @property
    def url(self) -> str:
        """The URL of the store."""
        return "redis+sentinel://" + ",".join(f"127.0.0.1:{node.port}" for node in self.sentinels) + f"/{self.service}"

    def primary(self) -> Node | None:
        """The server that a sentinel names, if it takes writes."""
        for sentinel in self.sentinels:
            answer = sentinel.says("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.service)
            for node in self.servers:
                if answer and int(answer[1]) == node.port and node.role == "master":
                    return node
        return None

    def settle(self, replicas: int = 1) -> None:
        """Wait until there is a primary, which is followed by so many replicas."""
        until(lambda: (now := self.primary()) and _raw(now, "INFO", "replication").count(b"state=online") == replicas)

    def close(self) -> None:
        """End everything."""
        for node in (*self.sentinels, *self.servers):
            node.kill(signal.SIGCONT)
            node.kill()

    def _sentinel(self, directory: Path, port: int, primary: int) -> Node:
        directory.mkdir()
        config = directory / "sentinel.conf"
        config.write_text(
            f"sentinel monitor {self.service} 127.0.0.1 {primary} 2\n"
            f"sentinel down-after-milliseconds {self.service} 1000\n"
            f"sentinel failover-timeout {self.service} 5000\n"
        )
        return _Sentinel(directory, port, str(config))

    def _sees(self, node: Node, replicas: int) -> bool:
        answer = node.says("SENTINEL", "MASTER", self.service)
        seen = [int(_field(answer, name)) for name in ("num-slaves", "num-other-sentinels")] if answer else []
        return seen == [replicas, 2]


class _Sentinel(Node):
    def __init__(self, directory: Path, port: int, config: str) -> None:
        super().__init__(directory, port)
        self.kill()
        self._options = [config, *self._options, "--sentinel"]
        self.start()


def _field(answer: Any, name: str) -> Any:
    if isinstance(answer, dict):
        return answer.get(name, answer.get(name.encode(), -1))
    pairs = dict(zip(answer[::2], answer[1::2], strict=True))
    return pairs.get(name.encode(), -1)


def _raw(node: Node, *command: str) -> bytes:
    """The answer to a command as it comes."""
    with node.client() as client, suppress(redis.RedisError):
        client.response_callbacks.clear()
        answer = client.execute_command(*command)
        return answer if isinstance(answer, bytes) else b""
    return b""


@contextmanager
def cluster(home: Path, primaries: int = 3, replicas: int = 1, options: tuple[str, ...] = ()) -> Iterator[Cluster]:
    """A cluster for the length of a with block."""
    here = Cluster(home, primaries, replicas, *options)
    try:
        yield here
    finally:
        here.close()


@contextmanager
def sentinels(home: Path, replicas: int = 1) -> Iterator[Sentinels]:
    """A primary with replicas and sentinels, for the length of a with block."""
    here = Sentinels(home, replicas)
    try:
        yield here
    finally:
        here.close()
