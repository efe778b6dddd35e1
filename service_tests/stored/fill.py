"""Fills a data directory by the code at hand, and writes it down with what that code answers: see README.md.

`python -m service_tests.stored.fill 0_2_0` makes `version_0_2_0.tar.xz` and `version_0_2_0.json`.
"""

import base64
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import redis
from numpy.typing import NDArray

from app.store.keys import KeyStore, Role, draw_key
from service_tests.checks import NPY, RESPOND_ASYNC, array, post, put
from service_tests.running import Running, service
from service_tests.servers import until
from service_tests.stored.earlier import arrays
from service_tests.stored.specs import BUILDING, DATASETS, FAILED, INTERRUPTED, MAPS, ROWS, WORK

HERE = Path(__file__).parent
Answers = dict[str, Any]


def written(a: NDArray[Any]) -> Answers:
    """An array in full."""
    return {"dtype": a.dtype.str, "shape": list(a.shape), "base64": base64.b64encode(a.tobytes()).decode()}


def hashed(a: NDArray[Any]) -> Answers:
    """What an array is told by."""
    return {"dtype": a.dtype.str, "shape": list(a.shape), "sha256": hashlib.sha256(a.tobytes()).hexdigest()}


def answered(http: httpx.Client, name: str, spec: Any) -> Answers:
    """All that is told of a map, and what it makes of some rows."""
    record = http.get(f"/v1/maps/{name}").json()
    assert record["status"] == "ready", record
    told = {"spec": spec, "record": record, "arrays": {one: hashed(a) for one, a in arrays(http, name).items()}}
    rows = {"vectors": ROWS[str(spec["input_dim"])]}
    if spec["sampler"]["kind"] == "gcws":
        return told | {"codes": post(http, f"{name}/codes?encoding=pairs", rows).json()["codes"]}
    return told | {"features": written(array(post(http, f"{name}/transform", rows, NPY)))}


def fill(data: Path) -> Answers:
    """Store something of everything. Given is what was answered, but for what unfinished work comes to."""
    told: Answers = {"rows": ROWS, "maps": {}, "datasets": {}, "failed": {}, "unfinished": {}, "jobs": {}, "keys": {}}
    with service(data, "--job-workers", "1") as running, running.client(Prefer="wait=30") as http:
        for name, (body, ttl, _) in DATASETS.items():
            answer = http.put(f"/v1/datasets/{name}", json=body, params={} if ttl is None else {"ttl": ttl})
            assert answer.status_code == 201, answer.text
        for name, spec in MAPS.items():
            answer = put(http, name, spec)
            assert answer.status_code in (201, 202), (name, answer.text)
        until(lambda: all(http.get(f"/v1/maps/{name}").json()["status"] != "building" for name in MAPS))
        told["maps"] = {name: answered(http, name, spec) for name, spec in MAPS.items()}
        for name, (body, _, by) in DATASETS.items():
            record = http.get(f"/v1/datasets/{name}").json()
            features = array(post(http, f"{by}/transform", {"vectors": {"dataset": name}}, NPY))
            told["datasets"][name] = {"body": body, "record": record, "map": by, "features": written(features)}
    with service(data, "--job-workers", "1", "--max-job-seconds", "0.01") as running, running.client() as http:
        for name, spec in FAILED.items():
            assert http.put(f"/v1/maps/{name}", json=spec, headers=RESPOND_ASYNC).status_code == 202
            until(lambda: http.get(f"/v1/maps/{name}").json()["status"] == "failed")  # noqa: B023 - called at once
            told["failed"][name] = {"spec": spec, "before": http.get(f"/v1/maps/{name}").json()}
    with service(data) as running, running.client(**RESPOND_ASYNC) as http:
        made = draw_key(name="kept", role=Role.write, rate=5, burst=10, quota=1_000_000)
        with redis.Redis.from_url(running.socket) as store:
            KeyStore(store, most=1).create(made.key)
        told["keys"]["kept"] = {"text": made.text, "record": made.key.model_dump(mode="json")}
        leave_unfinished(running, http, told)
        write_as_text(running)
    return told


def leave_unfinished(running: Running, http: httpx.Client, told: Answers) -> None:
    """A map whose worker is killed after a checkpoint, and work that nobody has begun."""
    at = {}
    for name, spec in {**INTERRUPTED, **BUILDING}.items():
        at[name] = http.put(f"/v1/maps/{name}", json=spec).json()["job"]
        if name in INTERRUPTED:
            kill_a_worker_of(at[name], running)
            assert http.get(at[name]).json()["state"] == "running"
    for name, (path, body) in WORK.items():
        at[name] = http.post(path, json=body).headers["location"]
    for name, location in at.items():
        told["jobs"][name] = {"record": http.get(location).json()}
    for name, spec in {**INTERRUPTED, **BUILDING}.items():
        told["unfinished"][name] = {"spec": spec, "before": http.get(f"/v1/maps/{name}").json()}


def kill_a_worker_of(job: str, running: Running) -> None:
    """Let a worker take a job as far as its first checkpoint, and no further."""
    record = f"bochner:{{job:{job.rpartition('/')[2]}}}:record"
    worker = subprocess.Popen([sys.executable, "-m", "app", "worker", "--data-dir", str(running.data_dir)])
    with redis.Redis.from_url(running.socket) as store:
        until(lambda: store.hget(record, "checkpoint"))
    worker.kill()
    worker.wait()
    time.sleep(0.5)  # its job's process goes with it


def write_as_text(running: Running) -> None:
    """Have the store write its file anew as commands, which every Redis-compatible server reads."""
    with redis.Redis.from_url(running.socket) as store:
        store.config_set("aof-use-rdb-preamble", "no")
        until(lambda: store.bgrewriteaof() is not None)
        time.sleep(1)
        until(lambda: not store.info("persistence")["aof_rewrite_in_progress"])
        assert store.info("persistence")["aof_last_bgrewrite_status"] == "ok"


def go_on(data: Path, told: Answers) -> None:
    """Let a copy of the directory come to its ends, and add what it comes to."""
    with service(data, "--job-workers", "1") as running, running.client() as http:
        for name, job in told["jobs"].items():
            location = f"/v1/jobs/{job['record']['id']}"
            until(lambda: http.get(location).json()["ended_at"])  # noqa: B023 - called at once
            ended = http.get(location).json()
            assert ended["state"] == "succeeded", ended
            if name in WORK:
                job["answer"] = http.get(ended["result"]).json()
        for name, of in told["failed"].items():
            http.put(f"/v1/maps/{name}", json=of["spec"], headers=RESPOND_ASYNC)
            until(lambda: http.get(f"/v1/maps/{name}").json()["status"] == "ready")  # noqa: B023 - called at once
        for name, of in {**told["failed"], **told["unfinished"]}.items():
            record = http.get(f"/v1/maps/{name}").json()
            # What is not told again when it is made anew: its job, and when.
            of["record"] = {key: value for key, value in record.items() if key not in ("job", "created_at")}
            of["arrays"] = {one: written(a) for one, a in arrays(http, name).items()}


def pack(data: Path, told: Answers, version: str) -> None:
    """Write both files, with nothing of this machine in them."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", preset=9) as archive:
        archive.add(data / "appendonlydir", "appendonlydir", filter=plain)
    (HERE / f"version_{version}.tar.xz").write_bytes(packed.getvalue())
    # A line for each thing, so that two versions of the file can be compared.
    members = [
        f" {json.dumps(group)}: {{\n"
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in things.items())
        + "\n }"
        for group, things in told.items()
    ]
    (HERE / f"version_{version}.json").write_text("{\n" + ",\n".join(members) + "\n}\n")


def main(version: str) -> None:
    """Make the two files of a version."""
    with tempfile.TemporaryDirectory() as directory:
        data, copy = Path(directory, "data"), Path(directory, "copy")
        told = fill(data)
        copy.mkdir(mode=0o700)
        shutil.copytree(data / "appendonlydir", copy / "appendonlydir")
        go_on(copy, told)
        pack(data, told, version)


if __name__ == "__main__":
    main(sys.argv[1])
