"""Pages of the lists that the service returns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bochner_client.records import AliasRecord, DatasetRecord, IndexRecord, JobRecord, MapRecord, Record, VectorRecord


@dataclass(frozen=True, kw_only=True)
class Page(Record):
    """One page of a list."""

    next: str | None
    """Cursor of the next page; None on the last page."""


@dataclass(frozen=True, kw_only=True)
class MapPage(Page):
    """Page of maps, in order of their names."""

    maps: tuple[MapRecord, ...]

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"maps": tuple(map(MapRecord.read, document["maps"]))}


@dataclass(frozen=True, kw_only=True)
class DatasetPage(Page):
    """Page of datasets, in order of their names."""

    datasets: tuple[DatasetRecord, ...]

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"datasets": tuple(map(DatasetRecord.read, document["datasets"]))}


@dataclass(frozen=True, kw_only=True)
class IndexPage(Page):
    """Page of indexes, in order of their names."""

    indexes: tuple[IndexRecord, ...]

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"indexes": tuple(map(IndexRecord.read, document["indexes"]))}


@dataclass(frozen=True, kw_only=True)
class AliasPage(Page):
    """Page of aliases, in order of their names."""

    aliases: tuple[AliasRecord, ...]

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"aliases": tuple(map(AliasRecord.read, document["aliases"]))}


@dataclass(frozen=True, kw_only=True)
class VectorPage(Page):
    """Page of the vectors of an index, in an order of its own."""

    vectors: tuple[VectorRecord, ...]

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"vectors": tuple(map(VectorRecord.read, document["vectors"]))}


@dataclass(frozen=True, kw_only=True)
class JobPage(Page):
    """Page of jobs, oldest first."""

    jobs: tuple[JobRecord, ...]

    @classmethod
    def _read(cls, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"jobs": tuple(map(JobRecord.read, document["jobs"]))}
