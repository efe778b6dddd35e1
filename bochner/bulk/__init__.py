"""Apply a frozen map to files of any size, on all processors of this machine or on those of a Ray cluster."""

from bochner.bulk.computing import Computing
from bochner.bulk.errors import Refused, Unwritable
from bochner.bulk.formats.columns import Columns
from bochner.bulk.runs import Report, run

__all__ = ["Columns", "Computing", "Refused", "Report", "Unwritable", "run"]
