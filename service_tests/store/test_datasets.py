from datetime import timedelta
from typing import Any

import numpy as np
import pytest
import redis

from app.store.datasets import DatasetManifest, DatasetStore, described
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
    return store.create(described(name, rows.shape, arrays, ttl), arrays, ttl)


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


def test_all_keys_of_a_dataset_that_expires_go_together(client: redis.Redis, datasets: DatasetStore) -> None:
    manifest, created = create(datasets, megabytes=2.5, ttl=2)
    assert created
    assert manifest.expires_at is not None
    assert manifest.expires_at - manifest.created_at == timedelta(seconds=2)
    ends = [client.pexpiretime(key.decode()) for key in keys(client) - {INDEX.encode()}]
    assert len(ends) == 4
    assert max(ends) - min(ends) < 50
    assert 0 <= min(ends) / 1000 - manifest.expires_at.timestamp() < 30
    until(lambda: datasets.find("d") is None)
    until(lambda: keys(client) == {INDEX.encode()})
    with pytest.raises(Gone):
        datasets.read(manifest, "rows")
    assert not datasets.delete("d")
    assert create(datasets, seed=1)[1], "the name is free again"


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


@pytest.mark.parametrize(("before", "after"), [(None, 50), (50, None), (50, 90), (90, 50)])
def test_a_renewed_dataset_lives_as_long_as_was_said_last(
    client: redis.Redis, datasets: DatasetStore, before: int | None, after: int | None
) -> None:
    manifest, _ = create(datasets, megabytes=1.5, ttl=before)
    renewed = datasets.renew(manifest, after)
    assert renewed is not None
    assert datasets.find("d") == renewed
    assert (renewed.token, renewed.digest, renewed.created_at) == (manifest.token, manifest.digest, manifest.created_at)
    assert (renewed.expires_at is None) == (after is None)
    for key in keys(client) - {INDEX.encode()}:
        left = client.ttl(key)
        assert left == -1 if after is None else after - 2 <= left <= after


def test_what_is_gone_or_another_is_not_renewed(datasets: DatasetStore) -> None:
    manifest, _ = create(datasets, ttl=50)
    datasets.delete("d")
    assert datasets.renew(manifest, 100) is None
    other, _ = create(datasets, seed=1)
    assert datasets.renew(manifest, 100) is None
    assert datasets.find("d") == other


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
