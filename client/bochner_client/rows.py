"""Rows in requests: arrays, sparse arrays of SciPy, or rows of a dataset."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike

from bochner_client.arrays import as_numbers, base64_of, npy
from bochner_client.requests import JSON, NPY, NPZ, Body, written_json
from bochner_client.tables import is_missing


@dataclass(frozen=True)
class DatasetRows:
    """Rows of a dataset that is stored in the service.

    Args:
        dataset: name of the dataset.
        rows: number of rows to sample; None for all.
        seed: seed of the sample.
    """

    dataset: str
    rows: int | None = None
    seed: int | None = None

    def document(self) -> dict[str, Any]:
        """Return the rows as a member of a request body."""
        members = {"dataset": self.dataset, "rows": self.rows, "seed": self.seed}
        return {name: value for name, value in members.items() if value is not None}


class SparseRows(Protocol):
    """A sparse array or matrix of SciPy."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""

    def tocsr(self) -> Any:
        """Return the rows in CSR form."""


DenseOrSparse = ArrayLike | SparseRows
"""An array `(n, input_dim)` or what NumPy can convert to one, or a sparse array of SciPy."""
_FILES = {
    ".npy": NPY,
    ".npz": NPZ,
    ".parquet": "application/vnd.apache.parquet",
    ".arrows": "application/vnd.apache.arrow.stream",
    ".json": JSON,
}
"""Media types of files, by the suffixes of their names."""
Rows = DenseOrSparse | DatasetRows
"""Dense or sparse rows, or rows of a dataset."""


def is_sparse(rows: Rows) -> TypeGuard[SparseRows]:
    """Whether the rows are a sparse array; works without SciPy."""
    return hasattr(rows, "tocsr")


def is_dense(rows: Rows) -> TypeGuard[ArrayLike]:
    """Whether the rows are an array or what NumPy can convert to one."""
    return not isinstance(rows, DatasetRows) and not is_sparse(rows)


def as_member(rows: Rows) -> Any:
    """Return rows as a member of a JSON body."""
    if is_dense(rows):
        return base64_of(rows)
    if is_sparse(rows):
        return _sparse(rows)
    return cast(DatasetRows, rows).document()


def vectors_body(rows: Rows) -> Body:
    """Return a body of rows: dense rows as .npy, all others as JSON."""
    return npy(rows) if is_dense(rows) else written_json({"vectors": as_member(rows)})


def dataset_body(rows: DenseOrSparse | str | PathLike[str]) -> Body:
    """Return a body of rows to store: dense rows as .npy, sparse ones as JSON with `input_dim`, a file unchanged."""
    if isinstance(rows, str | PathLike):
        return _file(Path(rows))
    if is_sparse(rows):
        return written_json({"vectors": as_member(rows), "input_dim": rows.shape[1]})
    return npy(cast(ArrayLike, rows))


def sample_members(rows: Rows | None) -> Mapping[str, Any]:
    """Return rows as members of a JSON body that also has options; no members for None."""
    if rows is None:
        return {}
    if isinstance(rows, DatasetRows):
        return rows.document()
    return {"vectors": as_member(rows)}


def listed(values: Iterable[object], called: str) -> list[Any]:
    """Return ids or tags as JSON values, from a list, an array or a column of any data frame; None for missing ones.

    Raises:
        ValueError: the values are a single string.
    """
    if isinstance(values, str | bytes):
        raise ValueError(f"expected one of the {called} for each vector, got the string {values!r}")
    found = values.to_pylist() if hasattr(values, "to_pylist") else values
    plain = (one.item() if isinstance(one, np.generic) else one for one in found)
    return [None if is_missing(one) else one for one in plain]


def summed(rows: SparseRows) -> Any:
    """Return sparse rows in CSR form with columns in order, each once with its sum; the given rows do not change."""
    found = rows.tocsr()
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    return found


def _sparse(rows: SparseRows) -> list[dict[str, Any]]:
    found = summed(rows)
    values, starts = as_numbers(found.data), found.indptr
    if values.dtype == bool:  # true is no number in JSON
        values = values.astype(np.int8)
    return [
        {"indices": found.indices[start:end].tolist(), "values": _with_nulls(values[start:end].tolist())}
        for start, end in pairwise(starts)
    ]


def _file(path: Path) -> Body:
    """Return a body with the content of a file, which is read while it is sent.

    Raises:
        ValueError: the suffix of the file's name is unknown.
    """
    if path.suffix not in _FILES:
        raise ValueError(f"{path.name} came; a file whose name ends with {', '.join(_FILES)} is wanted")
    return Body(_FILES[path.suffix], (np.memmap(path, np.uint8, "r").data,) if path.stat().st_size else ())


def _with_nulls(values: list[Any]) -> list[Any]:
    """Return the values with NaN, which stands for a missing number, replaced by None."""
    return [None if value != value else value for value in values]
