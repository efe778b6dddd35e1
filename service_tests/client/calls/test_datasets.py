import io
import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from arro3.io import read_ipc_stream, write_parquet

from bochner_client import DatasetExists, DatasetNotFound, NotModified
from service_tests.checks import arrow
from service_tests.client.conftest import Asked

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_a_file_is_kept_as_it_is(ask: Asked, name: str, tmp_path: Path) -> None:
    digest = ask.put_dataset(name, ROWS).digest
    np.save(tmp_path / "rows.npy", ROWS)
    np.savez(tmp_path / "rows.npz", vectors=ROWS)
    for path in (tmp_path / "rows.npy", str(tmp_path / "rows.npz")):
        assert ask.put_dataset(name, path).digest == digest
    (tmp_path / "rows.json").write_text(json.dumps({"vectors": ROWS.tolist()}))
    assert ask.put_dataset(f"{name}-json", tmp_path / "rows.json").dtype == "float64"
    stream = arrow(x=ROWS, id=np.arange(4))
    (tmp_path / "rows.arrows").write_bytes(stream)
    write_parquet(read_ipc_stream(io.BytesIO(stream)), tmp_path / "rows.parquet")
    for suffix in ("arrows", "parquet"):
        assert ask.put_dataset(f"{name}-ids", tmp_path / f"rows.{suffix}").ids == "int"
    with pytest.raises(ValueError, match=r"rows\.csv came; .*\.parquet"):
        ask.put_dataset(name, tmp_path / "rows.csv")


def test_a_dataset_is_kept_looked_at_listed_and_deleted(ask: Asked, name: str) -> None:
    made = ask.put_dataset(name, ROWS, ttl=600)
    assert (made.shape, made.dtype, made.sparse) == ((4, 3), "float32", False)
    assert made.column_ranges == [(0, 9), (1, 10), (2, 11)]
    assert made.expires_at - made.created_at == timedelta(minutes=10)
    assert ask.get_dataset(name) == made
    with pytest.raises(NotModified):
        ask.get_dataset(name, if_none_match=made.digest)
    with pytest.raises(DatasetExists):
        ask.put_dataset(name, ROWS + 1)
    ask.put_dataset(f"{name}-1", ROWS)
    page = ask.list_datasets(name, limit=1)
    assert ask.list_datasets(name, cursor=page.next).datasets[0].name == f"{name}-1"
    assert [one.name for one in ask.iter_datasets(name)] == [name, f"{name}-1"]
    assert ask.delete_dataset(name) is None
    with pytest.raises(DatasetNotFound):
        ask.get_dataset(name)
