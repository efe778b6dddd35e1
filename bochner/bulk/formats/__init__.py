"""File formats, one in each module: how their files are read, written, and cut into spans."""

from bochner.bulk.formats.base import Format
from bochner.bulk.formats.csv import Csv
from bochner.bulk.formats.npy import Npy
from bochner.bulk.formats.parquet import Parquet

FORMATS: dict[str, Format] = {"parquet": Parquet(), "csv": Csv(), "npy": Npy()}
"""Formats by their names on the command line."""
SUFFIXES = tuple(suffix for one in FORMATS.values() for suffix in one.suffixes)


def format_of(name: str) -> str | None:
    """Return the name of the format of files with such a name; None if there is no such format."""
    return next((known for known, one in FORMATS.items() if name.endswith(one.suffixes)), None)
