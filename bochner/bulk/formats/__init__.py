"""Kinds of files, one a module: what each reads and writes, and how it is cut into spans."""

from bochner.bulk.formats.base import Format
from bochner.bulk.formats.csv import Csv
from bochner.bulk.formats.npy import Npy
from bochner.bulk.formats.parquet import Parquet

FORMATS: dict[str, Format] = {"parquet": Parquet(), "csv": Csv(), "npy": Npy()}
"""By the names that the command line has for them."""
SUFFIXES = tuple(suffix for one in FORMATS.values() for suffix in one.suffixes)


def format_of(name: str) -> str | None:
    """The name of the format of files that are called so, None where there is none."""
    return next((known for known, one in FORMATS.items() if name.endswith(one.suffixes)), None)
