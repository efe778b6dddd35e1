"""Base classes of all formats, and the types that they read and write."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from app.core.arrays import Answer, Identified, PostedRows
from app.core.datasets import Reference
from app.core.json_text import CheckSize

Buffer = bytes | bytearray


class Body(NamedTuple):
    """Body of a request, and the headers that its format reads."""

    content: Buffer
    headers: Mapping[str, str] = {}
    """Headers by the names in `Format.request_headers`. Headers that the client did not send are missing."""
    check_options: CheckSize = lambda *_: None
    """Checks the size of everything other than rows before it is parsed."""
    check_size: Callable[[int], None] = lambda _: None
    """Checks the size of compressed contents before they are unpacked; raises TooLarge if they are too long."""
    check_rows: Callable[[int], None] = lambda _: None
    """Checks the number of bytes of rows before memory is allocated; raises TooLarge if there are too many."""


Posted = dict[str, PostedRows | Reference]
"""Rows of a JSON body, or references to datasets in place of rows, by member."""
Decoded = Mapping[str, PostedRows | Identified | Reference]
"""Rows of a body in any format, or references to datasets, by member; rows may have ids."""


class Encoded(NamedTuple):
    """Answer in a format."""

    pieces: list[bytes | memoryview] | Iterator[bytes | memoryview]
    """Bytes that are ready, as a list; or an iterator that makes one piece after the other, to be called on threads."""
    nbytes: int | None = None
    """Length of all pieces in bytes, if it is known before they are made."""
    text_bytes: int = 0
    """Bytes of text that is held beside the arrays until it is sent."""


class RowsFormat(ABC):
    """Media type in which a client may send rows.

    `decode` and `matrix` raise InvalidInput for bytes that are not of the media type. The sections Rows and Answers of
    the docstrings of classes are in the OpenAPI document. JSON has schemas there instead.
    """

    media_type: ClassVar[str]
    request_headers: ClassVar[Mapping[str, str]] = {}
    """Request headers that are needed to read a body, beside Content-Type: their names and their meanings."""
    has_members: ClassVar[bool] = False
    """Whether a body has named members, as JSON has; otherwise a body is one array."""
    expands: ClassVar[bool] = False
    """Whether rows may take much more memory than the body that they are read from."""
    in_own_process: ClassVar[bool] = False
    """Whether `matrix` waits for a separate process that reads the body."""

    def decode(self, body: Body, width: int, wanted: str, optional: Sequence[str] = ()) -> Decoded:
        """Read rows of `width` entries: the `wanted` member, and the `optional` members that are present.

        A format without members has one array, which is the `wanted` member.
        """
        del width, optional
        return {wanted: self.matrix(body)}

    @abstractmethod
    def matrix(self, body: Body) -> PostedRows | Identified:
        """Read rows whose width the body itself determines, with their ids if it has any."""


class Format(RowsFormat):
    """Media type in which a client may send rows and receive arrays."""

    narrower: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Dtypes that a client may request instead of an answer's dtype: `Accept: media/type; dtype=float16`."""
    operations_per_number: ClassVar[int] = 32
    """Multiplications of a matrix product that take as long as writing and sending one number of an answer."""

    @abstractmethod
    def encode(self, answer: Answer, dtype: np.dtype[Any] | None = None, warnings: Sequence[str] = ()) -> Encoded:
        """Write the answer, its rows in their own dtype or in the given one, which must be one of `narrower`.

        Warnings are written if the format has a place for them; a response header carries them in any case.

        Raises:
            OutOfRange: numbers are too large for the dtype.
        """
