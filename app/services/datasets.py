"""Keeps datasets, shows them to clients, and gives their rows to all who want vectors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field
from scipy import sparse

from app.core.arrays import CheckBytes, Floats, PostedRows, Rows, floats, refuse_not_finite
from app.core.datasets import MOST_RANGES, Reference, column_ranges, sample_rows
from app.core.errors import InvalidInput
from app.core.ids import Identified, Ids, NumberIds, TextIds
from app.request_context import note_rows
from app.services.cache import Cache, latest
from app.services.errors import Check, DatasetExists, DatasetNotFound, accept_any, digest_in
from app.services.limits import Limits
from app.store.datasets import DatasetManifest, DatasetStore, build_manifest
from app.store.errors import StoreUnavailable
from app.store.manifest import digest_of
from app.store.named import Arrays

# Columns whose ranges are told: a record is made in milliseconds, however wide the rows are.
_MOST_TOLD = 4096


class DatasetEntry(BaseModel):
    """A dataset, as it is listed."""

    model_config = ConfigDict(from_attributes=True, validate_by_name=True)

    name: str
    shape: tuple[int, int] = Field(description="Rows and columns.")
    dtype: str = Field(description="`float32` for a .npy of float32, else `float64`.")
    sparse: bool = Field(description="Whether it came, and is kept, as sparse rows.")
    ids: Literal["int", "string"] | None = Field(
        validation_alias="ids_kind", description="What the ids are that came with the rows; null for none."
    )
    digest: str = Field(description="SHA-256 over the rows in the form in which they are kept.")
    bytes: int = Field(validation_alias="nbytes", description="Size of what is kept.")
    created_at: datetime
    expires_at: datetime | None = Field(description="When it is deleted by itself; null for never.")


class DatasetRecord(DatasetEntry):
    """A dataset."""

    column_ranges: list[tuple[float | None, float | None]] | None = Field(
        description="Least and largest entry of each column, null where all are missing; null for more than "
        f"{_MOST_TOLD} columns."
    )


class DatasetPage(BaseModel):
    """Datasets in order of their names."""

    datasets: list[DatasetEntry]
    next: str | None = Field(description="Cursor of the next page, null on the last one.")


def record(manifest: DatasetManifest, ranges: Callable[[], Floats]) -> DatasetRecord:
    """The record of a stored dataset; `ranges` gives its columns' least and largest entries, where they are told."""
    is_told = "ranges" in manifest.arrays and manifest.shape[1] <= _MOST_TOLD
    pairs = [tuple(None if end != end else end for end in pair) for pair in ranges().T.tolist()] if is_told else None
    return DatasetRecord(**DatasetEntry.model_validate(manifest).model_dump(), column_ranges=pairs)


Gate = Callable[[PostedRows, str, CheckBytes], Rows]
"""Checks rows, given the JSON pointer to where they stood and a check of their bytes, as `BaseSpec.gate` does."""


class _Kept(NamedTuple):
    """The rows of a dataset in memory."""

    rows: Rows
    ids: Ids | None
    bytes: int


class Found(NamedTuple):
    """Rows of a dataset, which must not be written to."""

    rows: Rows
    digest: str
    """Of the whole dataset."""
    ids: Ids | None
    """The ids of the rows, where they came with some."""


class GatedRows(NamedTuple):
    """Rows behind a gate, and where they come from."""

    rows: dict[str, Rows]
    """The rows, by the member of the request that they came in."""
    references: dict[str, Reference]
    """The references to datasets, by the member of the request that they came in."""
    digests: dict[str, str]
    """Digests of the datasets that were named, by name, when their rows were read."""
    ids: dict[str, Ids]
    """The ids of the rows, by the member of the request that they came in, where they have some."""


@contextmanager
def at_their_datasets(references: Mapping[str, object]) -> Iterator[None]:
    """Refusals of rows point to where their dataset is named, for those members of a request that name one."""
    try:
        yield
    except InvalidInput as error:
        given = references.get(error.pointer.removeprefix("/").partition("/")[0])
        if not isinstance(given, Reference):
            raise
        raise InvalidInput(error.detail, given.place) from error


def dataset_digests(digests: Mapping[str, str]) -> dict[str, str]:
    """Digests of datasets, by the words for a dataset in a refusal."""
    return {f"dataset {name!r}": digest for name, digest in digests.items()}


class Datasets:
    """The datasets of the service. One that has expired is not there.

    Every method may raise StoreUnavailable or StoreDamaged; those that take a name of a dataset to use,
    DatasetNotFound. `unfit` says why the store cannot be trusted with new datasets, None if it can.
    """

    def __init__(self, store: DatasetStore, limits: Limits, cache: Cache, unfit: Callable[[], str | None]) -> None:
        self._store, self._limits, self._unfit = store, limits, unfit
        self._open = cache.keeping(self._load)

    def create(
        self, name: str, posted: PostedRows | Identified, ttl: int | None, owner: str = "", check: Check = accept_any
    ) -> tuple[DatasetRecord, bool]:
        """Store a dataset, and the ids of its rows, for `ttl` seconds, None for ever.

        If the same rows are there already, they now live so long.

        A new one is `owner`'s in the account of the store. `check` is told the digest of what has the name, None for
        nothing, and may raise.

        Returns:
            The record, and whether the dataset is new.

        Raises:
            DatasetExists: other rows have the name.
            InvalidInput: there are no rows or no columns, or not of numbers that are finite or missing.
            TooLarge: the dataset passes the limit.
            QuotaExceeded: the store, or the owner, has no room for it.
        """
        given, ids = posted if isinstance(posted, Identified) else (posted, None)
        rows = _check(given, self._limits.check_rows)
        arrays = _arrays(rows) | _id_arrays(ids)
        manifest = build_manifest(name, rows.shape, arrays, ttl)
        while True:
            there, created = self._store.find(name), False
            check(None if there is None else there.digest)
            if there is None:
                self._limits.check_dataset(manifest.nbytes)
                if reason := self._unfit():
                    raise StoreUnavailable(f"{reason}; no dataset is created there")
                there, created = self._store.create(manifest, arrays, ttl, owner)
                if not created:
                    check(there.digest)
            if there.digest != manifest.digest:
                raise DatasetExists(name, there.digest)
            kept = there if created else self._store.renew(there, ttl)
            if kept is not None:
                return record(kept, lambda: arrays["ranges"]), created

    def get(self, name: str) -> DatasetRecord:
        """The record of a dataset."""

        def read() -> DatasetRecord:
            manifest = self._find(name)
            return record(manifest, lambda: self._store.read(manifest, "ranges"))

        return latest(read)

    def list(self, prefix: str, cursor: str | None, limit: int) -> DatasetPage:
        """A page of records in order of their names, without the ranges of columns."""
        manifests, after = self._store.page(prefix, cursor, limit)
        return DatasetPage(datasets=[DatasetEntry.model_validate(manifest) for manifest in manifests], next=after)

    def delete(self, name: str, check: Check = accept_any) -> None:
        """Remove a dataset. `check` is told its digest, and may raise: then it stays, and so does any other."""
        if not self._store.delete(name, lambda stored, _: check(digest_in(DatasetManifest, stored))):
            raise DatasetNotFound(name)

    def read(self, wanted: Reference) -> Found:
        """The rows of a dataset, or of a sample in the same order.

        Raises:
            InvalidInput: the sample is larger than the dataset.
        """

        def read() -> Found:
            manifest = self._find(wanted.dataset)
            n, there = wanted.rows, manifest.shape[0]
            if n is not None and n > there:
                detail = f"{n} rows are wanted; dataset {wanted.dataset!r} has {there}"
                raise InvalidInput(detail, f"{wanted.pointer}/rows")
            kept = self._open(manifest)
            if n is None or n == there:
                return Found(kept.rows, manifest.digest, kept.ids)
            some = sample_rows(there, n, wanted.seed)
            return Found(kept.rows[some], manifest.digest, None if kept.ids is None else kept.ids.take(some))

        return latest(read)

    def read_rows(self, posted: Mapping[str, PostedRows | Identified | Reference], gate: Gate) -> GatedRows:
        """The rows of a request, by its members, or of the datasets that it names, once a gate has checked them.

        Raises:
            InvalidInput: a sample is larger than its dataset, or the gate refuses rows.
            TooLarge: rows would take more than a dataset may, as numbers that the gate lets through.
        """
        rows: dict[str, Rows] = {}
        ids: dict[str, Ids] = {}
        digests: dict[str, str] = {}
        references = {member: given for member, given in posted.items() if isinstance(given, Reference)}
        for member, given in sorted(posted.items(), key=itemgetter(0)):
            found: PostedRows
            if isinstance(given, Reference):
                found, digest, known = self.read(given)
                # The first digest, if the dataset is replaced between two members: whoever compares it with the new
                # one then sees that it has changed.
                digests.setdefault(given.dataset, digest)
            else:
                found, known = given if isinstance(given, Identified) else (given, None)
            with at_their_datasets(references):
                rows[member] = gate(found, f"/{member}", self._limits.check_rows)
            note_rows(rows[member].shape[0])
            if known is not None:
                ids[member] = known
        return GatedRows(rows, references, digests, ids)

    def digest(self, name: str) -> str:
        """The digest of a dataset."""
        return self._find(name).digest

    def _find(self, name: str) -> DatasetManifest:
        manifest = self._store.find(name)
        if manifest is None:
            raise DatasetNotFound(name)
        return manifest

    def _load(self, manifest: DatasetManifest) -> _Kept:
        manifest.check_seal(digest_of(manifest.arrays, shape=manifest.shape))
        arrays = self._store.read_all(manifest)
        for array in arrays.values():
            array.flags.writeable = False  # all who use the dataset share it
        return _Kept(rows_in(arrays, manifest.shape), _ids_of(arrays), manifest.nbytes)


def _check(posted: PostedRows, check: CheckBytes) -> Rows:
    """Check rows; keep the precision in which they came, and whole numbers in one that holds them."""
    if posted.ndim != 2:
        raise InvalidInput(f"the array has shape {posted.shape}; a 2-D array (rows, columns) is wanted", "/vectors")
    n, d = posted.shape
    if not n or not d:
        raise InvalidInput(f"{n} rows of {d} entries came; a dataset has at least one row and one column", "/vectors")
    # Whole numbers of more than 16 bits are kept in float64.
    dtype = np.result_type(posted.dtype, np.float32) if posted.dtype.kind in "biuf" else np.dtype(np.float64)
    rows = floats(posted, d, dtype, "/vectors", check)
    refuse_not_finite(rows, "/vectors", missing=None)
    return rows


def _arrays(rows: Rows) -> Arrays:
    """The arrays to store for rows. Equal rows give equal arrays."""
    ranges = {"ranges": column_ranges(rows)} if rows.shape[1] <= MOST_RANGES else {}
    if isinstance(rows, np.ndarray):
        return {"rows": rows, **ranges}
    wide = max(rows.shape[1], rows.nnz) > np.iinfo(np.int32).max
    indptr, indices = (part.astype(np.int64 if wide else np.int32) for part in (rows.indptr, rows.indices))
    return {"indptr": indptr, "indices": indices, "values": rows.data, **ranges}


def rows_in(arrays: Mapping[str, NDArray[Any]], shape: Sequence[int] | NDArray[Any]) -> Rows:
    """The rows of this shape that arrays have: as they are, or the parts of sparse ones."""
    if "rows" in arrays:
        return arrays["rows"]
    return sparse.csr_array(
        (arrays["values"], arrays["indices"], arrays["indptr"]), shape=(int(shape[0]), int(shape[1]))
    )


def _id_arrays(ids: Ids | None) -> Arrays:
    """The arrays to store for ids."""
    if ids is None:
        return {}
    return {"ids": ids.numbers} if isinstance(ids, NumberIds) else {"id_ends": ids.ends, "id_text": ids.text}


def _ids_of(arrays: Arrays) -> Ids | None:
    """The ids that arrays of a dataset have, if they have some."""
    if "ids" in arrays:
        return NumberIds(arrays["ids"])
    return TextIds(arrays["id_ends"], arrays["id_text"]) if "id_ends" in arrays else None
