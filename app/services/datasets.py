"""Datasets: stored, shown to clients, and read wherever a request or a job needs vectors."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from scipy import sparse

from app.core.arrays import (
    CheckBytes,
    Floats,
    Identified,
    Ids,
    NumberIds,
    PostedRows,
    Rows,
    TextIds,
    floats,
    own_bytes,
    refuse_not_finite,
)
from app.core.datasets import MOST_RANGES, Reference, column_ranges, sample_rows
from app.core.errors import InvalidInput
from app.core.model import Described
from app.request_context import note_rows
from app.services.cache import Cache, latest
from app.services.errors import Check, DatasetExists, DatasetNotFound, accept_any, digest_in
from app.services.limits import Limits
from app.store.datasets import DatasetManifest, DatasetStore, build_manifest
from app.store.errors import StoreUnavailable
from app.store.manifest import digest_of
from app.store.named import Arrays

# Most columns whose ranges a record shows: a record is made in milliseconds, however wide the rows are.
_MOST_TOLD = 4096


class DatasetEntry(Described):
    """A dataset, as it appears in a list."""

    model_config = ConfigDict(from_attributes=True, validate_by_name=True)

    name: str
    """Name of the dataset."""
    shape: tuple[int, int]
    """Number of rows and number of columns."""
    dtype: str
    """`float32` if uploaded as a .npy file of float32, else `float64`."""
    sparse: bool
    """Whether the dataset was uploaded, and is stored, as sparse rows."""
    ids: Literal["int", "string"] | None = Field(validation_alias="ids_kind")
    """Type of the ids uploaded with the rows; null if there are no ids."""
    digest: str
    """SHA-256 of the rows as they are stored."""
    bytes: int = Field(validation_alias="nbytes")
    """Size of the stored data, in bytes."""
    created_at: datetime
    """Time of the PUT."""
    expires_at: datetime | None
    """Time at which the dataset is deleted automatically; null for never."""


class DatasetRecord(DatasetEntry):
    """A dataset."""

    column_ranges: list[tuple[float | None, float | None]] | None = Field(
        description="Least and largest entry of each column, null where all are missing; null for more than "
        f"{_MOST_TOLD} columns."
    )


class DatasetPage(Described):
    """A page of datasets in order of their names."""

    datasets: list[DatasetEntry]
    """Datasets, in order of their names."""
    next: str | None
    """Cursor of the next page, null on the last one."""


def record(manifest: DatasetManifest, ranges: Callable[[], Floats]) -> DatasetRecord:
    """Return the record of a stored dataset; `ranges` reads the least and largest entries of columns to show."""
    is_told = "ranges" in manifest.arrays and manifest.shape[1] <= _MOST_TOLD
    pairs = [tuple(None if end != end else end for end in pair) for pair in ranges().T.tolist()] if is_told else None
    return DatasetRecord(**DatasetEntry.model_validate(manifest).model_dump(), column_ranges=pairs)


Gate = Callable[[PostedRows, str, CheckBytes], Rows]
"""Checks rows, as `BaseSpec.gate` does; receives the rows, their JSON pointer and a check of their size in bytes."""


class _Kept(NamedTuple):
    """Rows of a dataset in memory."""

    rows: Rows
    ids: Ids | None
    bytes: int


class Found(NamedTuple):
    """Rows of a dataset, which must not be written to."""

    rows: Rows
    digest: str
    """Digest of the whole dataset, even if the rows are a sample."""
    ids: Ids | None
    """Ids of the rows; None if they have none."""


class GatedRows(NamedTuple):
    """Rows that a gate has checked, and where they come from."""

    rows: dict[str, Rows]
    """Rows, by member of the request."""
    references: dict[str, Reference]
    """References to datasets, by member of the request."""
    digests: dict[str, str]
    """Digests of the referenced datasets, by name, at the time when their rows were read."""
    ids: dict[str, Ids]
    """Ids of the rows, by member of the request, for rows that have ids."""


@contextmanager
def at_their_datasets(references: Mapping[str, object]) -> Iterator[None]:
    """Make errors about rows point to the name of their dataset, for members of the request that are references."""
    try:
        yield
    except InvalidInput as error:
        given = references.get(error.pointer.removeprefix("/").partition("/")[0])
        if not isinstance(given, Reference):
            raise
        raise InvalidInput(error.detail, given.place) from error


def dataset_digests(digests: Mapping[str, str]) -> dict[str, str]:
    """Return digests of datasets, keyed by the phrase that names the dataset in error messages."""
    return {f"dataset {name!r}": digest for name, digest in digests.items()}


class Datasets:
    """Datasets of the service. An expired dataset counts as missing.

    Every method may raise StoreUnavailable or StoreDamaged; methods that use a dataset by name raise DatasetNotFound.
    `unfit` returns the reason why the store cannot be trusted with new datasets, or None if it can.
    """

    def __init__(self, store: DatasetStore, limits: Limits, cache: Cache, unfit: Callable[[], str | None]) -> None:
        self._store, self._limits, self._unfit = store, limits, unfit
        self._open = cache.keeping(self._load)

    def create(
        self, name: str, posted: PostedRows | Identified, ttl: int | None, owner: str = "", check: Check = accept_any
    ) -> tuple[DatasetRecord, bool]:
        """Store a dataset, and the ids of its rows, for `ttl` seconds, or for ever if None.

        If the same rows are already stored under the name, their time to live starts again with `ttl`.

        A new dataset counts towards `owner`'s quota. `check` receives the digest of the dataset that has the name, None
        if there is none, and may raise.

        Returns:
            The record, and whether the dataset is new.

        Raises:
            DatasetExists: a dataset of other rows has the name.
            InvalidInput: there are no rows or no columns, or entries that are neither finite numbers nor missing.
            TooLarge: the dataset exceeds the limit.
            QuotaExceeded: the quota of the store, or of the owner, has no room for the dataset.
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
        """Return the record of a dataset."""

        def read() -> DatasetRecord:
            manifest = self._find(name)
            return record(manifest, lambda: self._store.read(manifest, "ranges"))

        return latest(read)

    def list(self, prefix: str, cursor: str | None, limit: int) -> DatasetPage:
        """Return a page of records in order of their names, without the ranges of columns."""
        manifests, after = self._store.page(prefix, cursor, limit)
        return DatasetPage(datasets=[DatasetEntry.model_validate(manifest) for manifest in manifests], next=after)

    def delete(self, name: str, check: Check = accept_any) -> None:
        """Delete a dataset. `check` receives its digest; if it raises, no dataset of this name is deleted."""
        if not self._store.delete(name, lambda stored, _: check(digest_in(DatasetManifest, stored))):
            raise DatasetNotFound(name)

    def read(self, wanted: Reference) -> Found:
        """Return the rows of a dataset, or of a sample in the dataset's order.

        Raises:
            InvalidInput: the sample is larger than the dataset.
        """

        def read() -> Found:
            manifest = self._find(wanted.dataset)
            n, there = wanted.rows, manifest.shape[0]
            if n is not None and n > there:
                detail = f"expected {n} rows, got {there} in dataset {wanted.dataset!r}"
                raise InvalidInput(detail, f"{wanted.pointer}/rows")
            kept = self._open(manifest)
            if n is None or n == there:
                return Found(kept.rows, manifest.digest, kept.ids)
            some = sample_rows(there, n, wanted.seed)
            return Found(kept.rows[some], manifest.digest, None if kept.ids is None else kept.ids.take(some))

        return latest(read)

    def read_rows(self, posted: Mapping[str, PostedRows | Identified | Reference], gate: Gate) -> GatedRows:
        """Return the rows of each member of a request, read from datasets for references, once a gate has checked them.

        Raises:
            InvalidInput: a sample is larger than its dataset, or the gate refuses rows.
            TooLarge: rows would take more memory than a dataset may, in the dtype that the gate returns.
        """
        rows: dict[str, Rows] = {}
        ids: dict[str, Ids] = {}
        digests: dict[str, str] = {}
        made = 0  # bytes of the request's own rows, as they came
        references = {member: given for member, given in posted.items() if isinstance(given, Reference)}
        for member, given in sorted(posted.items(), key=itemgetter(0)):
            found: PostedRows
            if isinstance(given, Reference):
                found, digest, known = self.read(given)
                # If the dataset is replaced between two members, the first digest is kept: a comparison with the new
                # digest then shows that the dataset has changed.
                digests.setdefault(given.dataset, digest)
            else:
                found, known = given if isinstance(given, Identified) else (given, None)
            with at_their_datasets(references):
                rows[member] = gate(found, f"/{member}", partial(self._check_more, made))
            made += own_bytes(rows[member]) * found.dtype.itemsize // rows[member].dtype.itemsize
            del found  # a sample is not needed any more after an input
            note_rows(rows[member].shape[0])
            if known is not None:
                ids[member] = known
        return GatedRows(rows, references, digests, ids)

    def _check_more(self, made: int, nbytes: int) -> None:
        """Raise TooLarge if rows take too much memory together with what other members of the request have made."""
        self._limits.check_rows(made + nbytes)

    def digest(self, name: str) -> str:
        """Return the digest of a dataset."""
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
            array.flags.writeable = False  # all users of the dataset share it
        return _Kept(rows_in(arrays, manifest.shape), _ids_of(arrays), manifest.nbytes)


def _check(posted: PostedRows, check: CheckBytes) -> Rows:
    """Check rows; return them in the precision in which they were sent, whole numbers as floats that hold them."""
    if posted.ndim != 2:
        raise InvalidInput(f"expected a 2-D array (rows, columns), got shape {posted.shape}", "/vectors")
    n, d = posted.shape
    if not n or not d:
        raise InvalidInput(f"expected at least one row and one column, got {n} rows of {d} entries", "/vectors")
    # Whole numbers of more than 16 bits are kept in float64.
    dtype = np.result_type(posted.dtype, np.float32) if posted.dtype.kind in "biuf" else np.dtype(np.float64)
    rows = floats(posted, d, dtype, "/vectors", check)
    refuse_not_finite(rows, "/vectors", missing=None)
    return rows


def _arrays(rows: Rows) -> Arrays:
    """Return the arrays to store for rows. Equal rows have equal arrays."""
    ranges = {"ranges": column_ranges(rows)} if rows.shape[1] <= MOST_RANGES else {}
    if isinstance(rows, np.ndarray):
        return {"rows": rows, **ranges}
    wide = max(rows.shape[1], rows.nnz) > np.iinfo(np.int32).max
    indptr, indices = (part.astype(np.int64 if wide else np.int32) for part in (rows.indptr, rows.indices))
    return {"indptr": indptr, "indices": indices, "values": rows.data, **ranges}


def rows_in(arrays: Mapping[str, NDArray[Any]], shape: Sequence[int] | NDArray[Any]) -> Rows:
    """Return the rows of this shape that are stored in arrays, dense or as the parts of sparse rows."""
    if "rows" in arrays:
        return arrays["rows"]
    return sparse.csr_array(
        (arrays["values"], arrays["indices"], arrays["indptr"]), shape=(int(shape[0]), int(shape[1]))
    )


def _id_arrays(ids: Ids | None) -> Arrays:
    """Return the arrays to store for ids."""
    if ids is None:
        return {}
    return {"ids": ids.numbers} if isinstance(ids, NumberIds) else {"id_ends": ids.ends, "id_text": ids.text}


def _ids_of(arrays: Arrays) -> Ids | None:
    """Return the ids in the arrays of a dataset, or None if there are none."""
    if "ids" in arrays:
        return NumberIds(arrays["ids"])
    return TextIds(arrays["id_ends"], arrays["id_text"]) if "id_ends" in arrays else None
