"""Datasets in the store: dense rows as one array or sparse rows as the three of CSR, with column ranges and ids."""

import secrets
from datetime import datetime
from typing import Self

import redis
from pydantic import model_validator

from app.store.account import UNLIMITED, Quota
from app.store.connection import acknowledge
from app.store.manifest import ArrayEntry, Manifest, digest_of, now
from app.store.named import Arrays, NamedStore, contents, end

_IDS = frozenset({"ids", "id_ends", "id_text"})


class DatasetManifest(Manifest):
    """Manifest of a dataset, without its arrays."""

    kind = "dataset"
    dtypes = frozenset({"float32", "float64", "int32", "int64", "uint64", "uint8"})
    newest = 2
    """Since version 2 rows may have ids: the array `ids`, or `id_text` with the end of each id in `id_ends`."""

    shape: tuple[int, int]
    expires_at: datetime | None

    @model_validator(mode="after")
    def _known_arrays(self) -> Self:
        ids = {name for name in self.arrays if name in _IDS}
        rows = set(self.arrays) - {"ranges"} - ids
        kinds_of_ids: tuple[set[str], ...] = set(), {"ids"}, {"id_ends", "id_text"}
        if rows not in ({"rows"}, {"indptr", "indices", "values"}) or ids not in kinds_of_ids:
            raise ValueError("these are not the arrays of a dataset")
        return self

    @property
    def sparse(self) -> bool:
        """Whether the rows are stored as CSR."""
        return "values" in self.arrays

    @property
    def ids_kind(self) -> str | None:
        """Type of the rows' ids, "int" or "string"; None if the rows have no ids."""
        return "int" if "ids" in self.arrays else "string" if "id_ends" in self.arrays else None

    @property
    def dtype(self) -> str:
        """Dtype of the rows' entries."""
        return self.arrays["values" if self.sparse else "rows"].dtype


class DatasetStore(NamedStore[DatasetManifest]):
    """Store of datasets: creates, renews, finds, lists, reads and deletes them. Of expired ones nothing remains."""

    def __init__(self, client: redis.Redis, quota: Quota = UNLIMITED) -> None:
        super().__init__(client, DatasetManifest, quota)

    def create(
        self, manifest: DatasetManifest, arrays: Arrays, ttl: int | None, owner: str = ""
    ) -> tuple[DatasetManifest, bool]:
        """Store a dataset unless its name is taken; `manifest` comes from `build_manifest`.

        Returns:
            The manifest under the name now, and whether it is the given one.

        Raises:
            QuotaExceeded: there is no room for the dataset.
        """
        there = DatasetManifest.parse(self._put(manifest, contents(arrays), ttl, owner=owner))
        created = there.token == manifest.token
        if created and ttl is not None:
            self._tidy(manifest.name)
        return there, created

    @acknowledge()
    def renew(self, there: DatasetManifest, ttl: int | None) -> DatasetManifest | None:
        """Make a dataset live for `ttl` seconds from now on, None for ever; StoreDamaged if chunks of it are missing.

        Returns:
            The new manifest; None if the dataset is gone, or another client renews it at the same time.
        """
        if ttl is None and there.expires_at is None:
            return self.confirm(there)
        return self._change_lifetime(there, lambda _: ({"expires_at": end(ttl)}, ttl))

    def verify(self, manifest: DatasetManifest) -> None:
        """Verify the digests of manifest and arrays; see `NamedStore.verify`."""
        manifest.check_seal(digest_of(manifest.arrays, shape=manifest.shape))
        super().verify(manifest)


def build_manifest(name: str, shape: tuple[int, int], arrays: Arrays, ttl: int | None) -> DatasetManifest:
    """Return the manifest of a new dataset of arrays in C order, which lives `ttl` seconds, None for ever."""
    entries = {array_name: ArrayEntry.of(array) for array_name, array in arrays.items()}
    return DatasetManifest(
        schema_version=DatasetManifest.newest,
        token=secrets.token_hex(8),
        name=name,
        shape=shape,
        arrays=entries,
        digest=digest_of(entries, shape=shape),
        created_at=now(),
        expires_at=end(ttl),
    )
