"""Datasets and maps that are entered into the account."""

import numpy as np
import redis

from app.jobs.jobs import Jobs
from app.store.account import UNLIMITED, Quota
from app.store.datasets import DatasetStore, build_manifest
from app.store.maps import MapStore
from app.store.named import Arrays


def put_dataset(client: redis.Redis, name: str, rows: int = 10, ttl: int | None = None, **others: object) -> bool:
    quota, owner = others.get("quota", UNLIMITED), others.get("owner", "")
    assert isinstance(quota, Quota)
    arrays: Arrays = {"rows": np.random.default_rng(rows).random((rows, 4))}
    manifest = build_manifest(name, (rows, 4), arrays, ttl)
    return DatasetStore(client, quota).create(manifest, arrays, ttl, str(owner))[1]


def building(client: redis.Redis, name: str, quota: Quota = UNLIMITED, promised: int = 0, owner: str = "") -> str:
    """A map that a job is to build; gives the id of the job."""
    jobs = Jobs(client, 100, 60, quota)
    job = jobs.new_id(name)
    _, reservation = MapStore(client, quota).reserve(name, '{"seed": 0}', job, promised=promised, owner=owner)
    jobs.submit("build-map", {"name": name}, reservation=reservation, job_id=job, owner=owner)
    return job
