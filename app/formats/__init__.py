"""Formats of vectors and answers, which convert bytes to arrays and arrays to bytes.

A new format is one file with a class derived from `Format`, and its name in the list below.
"""

from app.formats.arrow import Arrow
from app.formats.base import Body, Buffer, Decoded, Format, Posted, RowsFormat
from app.formats.json import Json
from app.formats.npy import Npy
from app.formats.npz import Npz
from app.formats.parquet import Parquet

FORMATS: dict[str, Format] = {form.media_type: form for form in (Json(), Npy(), Npz(), Arrow())}
"""All formats by media type. The first one answers clients that state no preference."""

DATASET_FORMATS: dict[str, RowsFormat] = {**FORMATS, Parquet.media_type: Parquet()}
"""All formats in which the rows of a dataset may be sent."""

__all__ = ["DATASET_FORMATS", "FORMATS", "Body", "Buffer", "Decoded", "Format", "Posted", "RowsFormat"]
