from datetime import timedelta

import numpy as np
import pytest
from scipy import sparse

from bochner_client import DatasetExists, DatasetNotFound, NotModified, PreconditionFailed
from service_tests.client.conftest import Asked

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_a_dataset_is_kept_looked_at_and_deleted(ask: Asked, name: str) -> None:
    made = ask.put_dataset(name, ROWS, ttl=600)
    assert (made.shape, made.dtype, made.sparse) == ((4, 3), "float32", False)
    assert made.column_ranges == [(0, 9), (1, 10), (2, 11)]
    assert made.expires_at - made.created_at == timedelta(minutes=10)
    assert ask.get_dataset(name) == made
    assert ask.put_dataset(name, ROWS).expires_at is None
    with pytest.raises(DatasetExists):
        ask.put_dataset(name, ROWS + 1)
    assert ask.delete_dataset(name) is None
    with pytest.raises(DatasetNotFound):
        ask.get_dataset(name)


def test_a_dataset_is_changed_only_as_it_is_meant(ask: Asked, name: str) -> None:
    digest = ask.put_dataset(name, ROWS, only_new=True).digest
    with pytest.raises(PreconditionFailed):
        ask.put_dataset(name, ROWS, only_new=True)
    with pytest.raises(NotModified):
        ask.get_dataset(name, if_none_match=digest)
    with pytest.raises(PreconditionFailed):
        ask.delete_dataset(name, if_match="sha256:0")
    ask.delete_dataset(name, if_match=ask.put_dataset(name, ROWS, if_match=digest).digest)


def test_sparse_rows_stay_sparse(ask: Asked, name: str) -> None:
    made = ask.put_dataset(name, sparse.csr_array(np.eye(4, 9)))
    assert (made.shape, made.sparse) == ((4, 9), True)


def test_datasets_are_listed(ask: Asked, name: str) -> None:
    for i in range(2):
        ask.put_dataset(f"{name}-{i}", ROWS + i)
    page = ask.list_datasets(f"{name}-", limit=1)
    assert [one.name for one in page.datasets] == [f"{name}-0"]
    assert page.datasets[0].column_ranges is None
    assert ask.list_datasets(f"{name}-", cursor=page.next).datasets[0].name == f"{name}-1"
    assert [one.name for one in ask.iter_datasets(f"{name}-")] == [f"{name}-0", f"{name}-1"]
