"""What is done to the service while its clients work."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import get_args

import httpx
import psutil
import redis

from service_tests.jobs.site import gone
from service_tests.power.disk import Disk, Loss, Names, Tail
from service_tests.running import free_port
from service_tests.servers import Wire, answers, until

REPLICAS = ("first", "second")
WORKER = "worker"


class Deployment:
    """Everything that runs, and how to kill, stop and start it.

    Args:
        home: a new directory for it.
        program: the module that is run as the service, and what stands before the command.
    """

    def __init__(self, home: Path, program: Sequence[str]) -> None:
        self.disk = Disk(home)
        self.data = self.disk.root / "data"
        self.done = home / "done"
        self._home = home
        self._ports = {name: free_port() for name in REPLICAS}
        self.store = f"unix://{self.data / 'store.sock'}"
        self.store_wire = Wire(self.store)
        self.wires = [Wire(f"tcp://127.0.0.1:{port}") for port in self._ports.values()]
        self.urls = [f"http://127.0.0.1:{wire.port}" for wire in self.wires]
        behind = ("--redis-url", self.store_wire.url)
        # Long enough that only slow maps become jobs of themselves, on a busy machine too.
        serve = ("--job-workers", "0", "--max-request-seconds", "20")
        self._commands = {
            "first": ("serve", "--port", str(self._ports["first"]), "--data-dir", str(self.data), *serve),
            "second": ("serve", "--port", str(self._ports["second"]), *behind, *serve),
            WORKER: ("worker", *behind),
        }
        self._program = program
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *names: str) -> None:
        """Start processes, all if none is named."""
        environment = {**os.environ, **self.disk.environment, "SOAK_DONE": str(self.done)}
        for name in names or self._commands:
            command = [sys.executable, "-m", *self._program, *self._commands[name]]
            with (self._home / f"{name}.log").open("ab") as log:
                self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def wait_until_ready(self, given_up: Callable[[], bool] = lambda: False) -> float:
        """Wait for both replicas, or until it is given up; gives the seconds since the store has answered."""
        until(lambda: answers(self.store) or given_up())
        began = time.monotonic()
        until(lambda: all(map(self._ready, self._ports.values())) or given_up())
        return time.monotonic() - began

    def kill(self, name: str) -> None:
        """SIGKILL of a process, and of all that it started but the store; they are gone when this returns."""
        process = psutil.Process(self.processes[name].pid)
        server = self.server()
        family = [process, *(one for one in process.children(recursive=True) if one != server)]
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self.processes[name].wait(30)
        gone(family)

    def server(self) -> psutil.Process | None:
        """The process of the store; None where it does not answer."""
        with redis.Redis.from_url(self.store, retry=None) as client, suppress(redis.RedisError):
            return psutil.Process(int(client.info("server")["process_id"]))
        return None

    def kill_store(self) -> None:
        """SIGKILL of the store."""
        server = self.server()
        assert server is not None
        server.kill()
        with suppress(psutil.NoSuchProcess):  # it goes while it is looked at
            until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)

    def end(self, name: str) -> None:
        """SIGTERM of a process, and the wait for its end."""
        self.processes[name].terminate()
        self.processes[name].wait(60)

    def stop_for(self, process: psutil.Process, seconds: float) -> None:
        """SIGSTOP of a process for some time."""
        process.suspend()
        time.sleep(seconds)
        process.resume()

    def lose_power(self, loss: Loss, chance: Random) -> None:
        """Kill everything at once, leave what the disk would hold, and start again."""
        server = self.server()
        for process in self.processes.values():
            process.send_signal(signal.SIGSTOP)
        if server is not None:
            server.kill()
        for name in self.processes:
            self.kill(name)
        until(lambda: not answers(self.store))
        self.disk.lose_power(loss, chance)
        self.start()

    def replicas(self) -> list[tuple[int, psutil.Process]]:
        """The port of each replica itself, past the wires, and its process."""
        return [(port, psutil.Process(self.processes[name].pid)) for name, port in self._ports.items()]

    def close(self) -> None:
        """End everything."""
        for wire in (*self.wires, self.store_wire):
            wire.close()
        server = self.server()
        for name, process in self.processes.items():
            if process.poll() is None:
                self.kill(name)
        if server is not None:
            with suppress(psutil.NoSuchProcess):
                server.kill()

    @staticmethod
    def _ready(port: int) -> bool:
        with suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{port}/health/ready", timeout=60, verify=False).status_code == 200
        return False


Disturbance = Callable[[Deployment, Random], None]


def kill_store(deployment: Deployment, chance: Random) -> None:
    """The store dies, and the first replica starts it again."""
    del chance
    deployment.kill_store()


def kill_service(deployment: Deployment, chance: Random) -> None:
    """A replica dies and is started again; the first one then finds its store at work."""
    name = chance.choice(REPLICAS)
    deployment.kill(name)
    time.sleep(chance.uniform(0, 0.3))
    deployment.start(name)


def kill_worker(deployment: Deployment, chance: Random) -> None:
    """The worker dies, with the process of its job."""
    deployment.kill(WORKER)
    time.sleep(chance.uniform(0, 0.3))
    deployment.start(WORKER)


def kill_job(deployment: Deployment, chance: Random) -> None:
    """The process of a job dies, if there is one within a second."""
    end = time.monotonic() + chance.uniform(0.5, 1.0)
    while time.monotonic() < end:
        for job in psutil.Process(deployment.processes[WORKER].pid).children():
            with suppress(psutil.NoSuchProcess):
                job.kill()
                return
        time.sleep(0.005)


def kill_service_and_store(deployment: Deployment, chance: Random) -> None:
    """The first replica and the store die together."""
    del chance
    deployment.kill("first")
    deployment.kill_store()
    deployment.start("first")


def restart_service(deployment: Deployment, chance: Random) -> None:
    """A replica ends in order and is started again; the first one takes its store along."""
    name = chance.choice(REPLICAS)
    deployment.end(name)
    deployment.start(name)


def stop(deployment: Deployment, chance: Random) -> None:
    """Some process stands still for a moment, as on a machine that swaps."""
    processes = [psutil.Process(process.pid) for process in deployment.processes.values()]
    server = deployment.server()
    deployment.stop_for(chance.choice([*processes, *([server] if server else [])]), chance.uniform(0.2, 2.0))


def lose_replies(deployment: Deployment, chance: Random) -> None:
    """Requests are carried out whose answers are lost, between clients and service and between service and store."""
    for _ in range(4):
        if chance.random() < 0.5:
            deployment.store_wire.lose_reply_to(b"EVALSHA")
        else:
            deployment.wires[chance.randrange(len(REPLICAS))].lose_reply_to(chance.choice([b"PUT /v1", b"DELETE /v1"]))
        time.sleep(0.2)


def rewrite(deployment: Deployment, chance: Random) -> None:
    """The store writes its append-only file anew, and dies meanwhile or soon after."""
    with redis.Redis.from_url(deployment.store) as client, suppress(redis.ResponseError):
        client.bgrewriteaof()
    time.sleep(chance.uniform(0, 0.2))
    deployment.kill_store()


def fill_disk(deployment: Deployment, chance: Random) -> None:
    """The disk of the store is full for some seconds."""
    with deployment.disk.full():
        time.sleep(chance.uniform(0.5, 3.0))


def lose_power(deployment: Deployment, chance: Random) -> None:
    """The power goes, perhaps while the append-only file is written anew."""
    if chance.random() < 0.5:
        with redis.Redis.from_url(deployment.store) as client, suppress(redis.ResponseError):
            client.bgrewriteaof()
        time.sleep(chance.uniform(0, 0.2))
    deployment.lose_power(Loss(chance.choice(get_args(Names)), chance.choice(get_args(Tail))), chance)


ALL: dict[str, Disturbance] = {
    one.__name__: one
    for one in (
        *(kill_store, kill_service, kill_worker, kill_job, kill_service_and_store, restart_service),
        *(stop, lose_replies, rewrite, fill_disk, lose_power),
    )
}
