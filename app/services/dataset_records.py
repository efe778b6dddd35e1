"""The record of a dataset, as clients see it."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from app.core.arrays import Floats
from app.core.datasets import MOST_RANGES
from app.store.datasets import DatasetManifest


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

    column_ranges: list[tuple[float, float]] | None = Field(
        description=f"Least and largest entry of each column; null for more than {MOST_RANGES} columns."
    )


class DatasetPage(BaseModel):
    """Datasets in order of their names."""

    datasets: list[DatasetEntry]
    next: str | None = Field(description="Cursor of the next page, null on the last one.")


def entry(manifest: DatasetManifest) -> DatasetEntry:
    """The record of a stored dataset without its ranges."""
    return DatasetEntry.model_validate(manifest)


def record(manifest: DatasetManifest, ranges: Floats | None) -> DatasetRecord:
    """The record of a stored dataset; `ranges` are its columns' least and largest entries, None where not kept."""
    pairs = None if ranges is None else [(least, largest) for least, largest in ranges.T.tolist()]
    return DatasetRecord(**entry(manifest).model_dump(), column_ranges=pairs)
