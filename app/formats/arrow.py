"""The Arrow IPC stream: rows are a column of lists or columns of numbers, answers come in record batches."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.core.answers import Answer, dtype_of
from app.core.arrays import Array
from app.core.ids import Identified
from app.formats.arrow_ipc.answer import stream
from app.formats.arrow_ipc.rows import rows_of
from app.formats.base import Body, Decoded, Encoded, Format
from app.formats.npy import Npy


class Arrow(Format):
    """`application/vnd.apache.arrow.stream`."""

    media_type = "application/vnd.apache.arrow.stream"
    narrower = Npy.narrower
    rows_described = (
        "An Arrow IPC stream with one column of lists of numbers (FixedSizeList, or lists that are of one length), or "
        "with columns of numbers that make the row together: float16, float32, float64, or whole numbers that are "
        "exact. A column `id` of whole numbers or strings is kept with the rows. No dictionaries, no compression."
    )
    answers_described = (
        "An Arrow IPC stream with a column for each array, of FixedSizeLists where it has rows; complex as a struct of "
        "`real` and `imag`; before them `id`, where the rows came with ids. `; dtype=float16` as of `.npy`."
    )

    def decode(self, body: Body, width: int, wanted: str, optional: Sequence[str] = ()) -> Decoded:
        """Read the rows of a stream; where it has none, lists of no stated length are of the width that is wanted."""
        del optional
        return {wanted: rows_of(body, width)}

    def matrix(self, body: Body) -> Array | Identified:
        """Read the rows of a stream."""
        return rows_of(body)

    def encode(self, answer: Answer, dtype: np.dtype[Any] | None = None, warnings: Sequence[str] = ()) -> Encoded:
        """Write a schema, and a record batch for each block of rows."""
        del warnings
        return Encoded(stream(answer, dtype or dtype_of(answer)))
