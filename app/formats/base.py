"""The base of every format, and what it reads and writes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from app.core.arrays import Answer, PostedRows
from app.core.datasets import Reference
from app.core.ids import Identified
from app.core.json_text import CheckSize

Buffer = bytes | bytearray


class Body(NamedTuple):
    """The body of a request, and the headers that its format reads."""

    content: Buffer
    headers: Mapping[str, str] = {}
    """Its headers, by the names in `Format.request_headers`. Headers that did not come are missing."""
    check_options: CheckSize = lambda *_: None
    """Checks all that is no rows before that is parsed."""
    check_size: Callable[[int], None] = lambda _: None
    """Checks how long what is packed in it will be, before it is unpacked; raises TooLarge for too much."""
    check_rows: Callable[[int], None] = lambda _: None
    """Checks how many bytes rows take, before there is memory for them; raises TooLarge for too many."""


Posted = dict[str, PostedRows | Reference]
"""Rows that came, or the reference to a dataset that came in their place, by the member of a JSON body."""
Decoded = Mapping[str, PostedRows | Identified | Reference]
"""Likewise of a body in any format: rows may have ids with them."""


class Encoded(NamedTuple):
    """An answer in a format."""

    pieces: list[bytes | memoryview] | Iterator[bytes | memoryview]
    """Bytes that are ready, as a list; or an iterator that makes one piece after the other, to be called on threads."""
    nbytes: int | None = None
    """Length of all pieces, where it is known before they are made."""


class RowsFormat(ABC):
    """A media type in which rows come.

    `decode` and `matrix` raise InvalidInput for bytes that are not what the media type says.
    """

    media_type: ClassVar[str]
    request_headers: ClassVar[Mapping[str, str]] = {}
    """Headers of a request that are needed to read its body, beside Content-Type. Names, and what the headers mean."""
    rows_described: ClassVar[str] = ""
    """One sentence for the OpenAPI document on how rows come in this format. JSON has schemas there instead."""
    has_members: ClassVar[bool] = False
    """Whether rows come under the names that members of JSON have; else a body is one array."""
    in_own_process: ClassVar[bool] = False
    """Whether `matrix` waits for a process that reads the body."""

    def decode(self, body: Body, width: int, wanted: str, optional: Sequence[str] = ()) -> Decoded:
        """Read rows of `width` entries: the member that is wanted, and those of the optional ones that came.

        A format without members has one array, which is the member that is wanted.
        """
        del width, optional
        return {wanted: self.matrix(body)}

    @abstractmethod
    def matrix(self, body: Body) -> PostedRows | Identified:
        """Read rows whose width the body itself tells, with their ids if they have some."""


class Format(RowsFormat):
    """A media type in which rows come and arrays are answered."""

    narrower: ClassVar[Mapping[str, Sequence[str]]] = {}
    """The dtypes, by that of an answer, in which a client may have it instead: `Accept: media/type; dtype=float16`."""
    operations_per_number: ClassVar[int] = 32
    """Multiplications of a matrix product that take as long as writing and sending a number of an answer."""
    answers_described: ClassVar[str] = ""
    """One sentence for the OpenAPI document on how answers come in this format. JSON has schemas there instead."""

    @abstractmethod
    def encode(self, answer: Answer, dtype: np.dtype[Any] | None = None, warnings: Sequence[str] = ()) -> Encoded:
        """Write the answer, its rows in their own dtype or, if given, in one that is `narrower`.

        Warnings are written where the format has a place for them; a header tells them in any case.

        Raises:
            OutOfRange: numbers are too large for it.
        """
