"""Runs containers of an image with the rights that docker-compose.yml gives them, in a network of their own."""

import ctypes
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from service_tests.deploy.image import Image

_CLONE_NEWNET = 0x40000000
_SYSTEM = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
    {
        "destination": "/dev/shm",
        "type": "tmpfs",
        "source": "shm",
        "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"],  # as engines have it
    },
]


class Network:
    """A network with nothing in it but its own loopback, where every port is free and nobody listens from outside."""

    def __init__(self) -> None:
        hold = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep infinity"]
        self._holder = subprocess.Popen(hold, stdout=subprocess.PIPE)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"up\n"
        self.path = f"/proc/{self._holder.pid}/ns/net"

    @contextmanager
    def entered(self) -> Iterator[None]:
        """In this block the thread's new sockets are of this network."""
        with Path("/proc/thread-self/ns/net").open("rb") as before:
            _enter(self.path)
            try:
                yield
            finally:
                _enter(before.fileno())

    def close(self) -> None:
        """End it."""
        self._holder.kill()
        self._holder.communicate()


def _enter(namespace: str | int) -> None:
    file = os.open(namespace, os.O_RDONLY) if isinstance(namespace, str) else os.dup(namespace)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(file, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "the network cannot be entered")
    finally:
        os.close(file)


class Container:
    """A container of one service.

    Args:
        image: what it runs.
        service: it, as docker-compose.yml tells of it.
        network: where it listens and connects.
        directory: for what belongs to it; `volumes` are directories there, and its log is `NAME.log`.
        name: of the service.
        secrets: the files of secrets, by name.
    """

    def __init__(
        self,
        image: Image,
        service: dict[str, Any],
        network: Network,
        directory: Path,
        name: str,
        secrets: dict[str, Path],
    ) -> None:
        self.id = f"{name}-{os.getpid()}"
        self._state = directory / "containers"
        self._user = image.config["User"]
        self.log = directory / f"{name}.log"
        bundle = directory / "bundles" / name
        bundle.mkdir(parents=True, exist_ok=True)
        (bundle / "config.json").write_text(json.dumps(self._config(image, service, network, directory, secrets)))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self._crun("run", "--bundle", bundle, self.id), stdout=log, stderr=log)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """What a command says that is run beside, in the same container."""
        return subprocess.run(
            self._crun("exec", "--user", self._user, self.id, *command), capture_output=True, text=True, check=False
        )

    def stop(self, seconds: float) -> int:
        """End it as an engine does: SIGTERM, and SIGKILL after some seconds. Given is its exit code."""
        subprocess.run(self._crun("kill", self.id, "TERM"), check=False)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return -9

    def kill(self) -> None:
        """End it at once, if it is not gone."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(0)
            return
        subprocess.run(self._crun("kill", self.id, "KILL"), check=False)
        self.process.wait(30)

    def _crun(self, *args: Any) -> list[str]:
        # Where nobody sees the control groups, which crun looks at even when it is told to leave them alone.
        hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]
        return [*hidden, "crun", "--root", str(self._state), "--cgroup-manager=disabled", *map(str, args)]

    def _config(
        self,
        image: Image,
        service: dict[str, Any],
        network: Network,
        directory: Path,
        secrets: dict[str, Path],
    ) -> dict[str, Any]:
        """The same in the runtime's words."""
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["cap_drop"] == ["ALL"]
        uid, gid = map(int, image.config["User"].split(":"))
        hosts = directory / "hosts"
        hosts.write_text("127.0.0.1 localhost api worker store\n")
        mounts = [*_SYSTEM, _bind(hosts, "/etc/hosts")]
        for one in service["tmpfs"]:
            target, _, size = one.partition(":")
            options = ["nosuid", "nodev", "mode=1777", size]
            mounts.append({"destination": target, "type": "tmpfs", "source": "tmpfs", "options": options})
        mounts += [_bind(secrets[name], f"/run/secrets/{name}") for name in service.get("secrets", [])]
        for volume in service.get("volumes", []):
            source, target = volume.split(":")
            if not (directory / source).exists():
                (directory / source).mkdir(mode=0o700)
                os.chown(directory / source, uid, gid)  # an engine makes a volume as the image has its directory
            mounts.append(_bind(directory / source, target, "rw"))
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": uid, "gid": gid},
                "args": image.config["Entrypoint"] + service.get("command", image.config["Cmd"]),
                "env": image.config["Env"]
                + [f"{name}={value}" for name, value in service.get("environment", {}).items()],
                "cwd": "/",
                "capabilities": {},
                "noNewPrivileges": True,
            },
            "root": {"path": str(image.root), "readonly": service["read_only"]},
            "mounts": mounts,
            "linux": {
                "namespaces": [
                    *({"type": kind} for kind in ("mount", "pid", "ipc", "uts")),
                    {"type": "network", "path": network.path},
                ]
            },
        }


def _bind(source: Path, target: str, mode: str = "ro") -> dict[str, Any]:
    return {"destination": target, "type": "bind", "source": str(source), "options": ["bind", mode]}
