"""What is done to the service while its clients work."""

import time
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import get_args

import psutil
import redis

from service_tests.power.disk import Loss, Names, Tail
from service_tests.soak.deployment import REPLICAS, WORKER, Deployment

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
