from typing import Any

import numpy as np
import pytest
import redis

from app.store.datasets import DatasetManifest, DatasetStore, build_manifest
from app.store.errors import Gone, StoreDamaged
from app.store.pieces import PIECE_BYTES
from service_tests.checks import keys
from service_tests.servers import until

INDEX = "bochner:datasets"


@pytest.fixture
def datasets(client: redis.Redis) -> DatasetStore:
    return DatasetStore(client)


def matrix(seed: int = 0, megabytes: float = 0.001) -> Any:
    return np.random.default_rng(seed).normal(size=(int(megabytes * PIECE_BYTES / 32), 4))


def create(
    store: DatasetStore, name: str = "d", seed: int = 0, megabytes: float = 0.001, ttl: int | None = None
) -> tuple[DatasetManifest, bool]:
    rows = matrix(seed, megabytes)
    arrays = {"rows": rows}
    return store.create(build_manifest(name, rows.shape, arrays, ttl), arrays, ttl)


def names(store: DatasetStore, limit: int = 100) -> list[str]:
    return [manifest.name for manifest in store.page("", None, limit)[0]]


def test_what_is_created_is_found_and_read_bit_for_bit(client: redis.Redis, datasets: DatasetStore) -> None:
    manifest, created = create(datasets, megabytes=2.5)
    assert created
    assert datasets.find("d") == manifest
    rows = datasets.read(manifest, "rows")
    assert rows.tobytes() == matrix(megabytes=2.5).tobytes()
    assert {key.split(b"}")[0] for key in keys(client) - {INDEX.encode()}} == {b"bochner:{dataset:d"}
    assert {client.ttl(key) for key in keys(client)} == {-1}


def test_a_dataset_that_expires_while_it_is_read_is_gone_and_not_damaged(
    client: redis.Redis, datasets: DatasetStore
) -> None:
    """Some of its pieces first, as the server may find them."""
    manifest, _ = create(datasets, megabytes=2.5, ttl=1)
    until(lambda: datasets.find("d") is None)
    with pytest.raises(Gone):
        datasets.read(manifest, "rows")
    there, _ = create(datasets, seed=2, megabytes=2.5)
    with pytest.raises(Gone):
        datasets.read(manifest, "rows")
    client.delete(*(key for key in keys(client) if key.endswith(b":rows:1")))
    with pytest.raises(StoreDamaged, match="missing"):
        datasets.read(there, "rows")
    with pytest.raises(StoreDamaged, match="missing"):
        datasets.renew(there, 5)


def test_the_list_shows_none_that_expired_and_forgets_them(client: redis.Redis, datasets: DatasetStore) -> None:
    for name in "abcdef":
        create(datasets, name, ttl=1 if name in "bcf" else None)
    assert client.zcard(INDEX) == 6
    until(lambda: len(keys(client)) == 7)
    found, following = datasets.page("", None, 2)
    assert [manifest.name for manifest in found] == ["a"]
    assert following == "b"
    found, following = datasets.page("", following, 2)
    assert [manifest.name for manifest in found] == ["d"]
    assert following == "d"
    found, following = datasets.page("", following, 2)
    assert [manifest.name for manifest in found] == ["e"]
    assert following is None
    assert client.zrange(INDEX, 0, -1) == [b"a", b"d", b"e"]
