"""What a format must do."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from app.core.arrays import Answer, PostedRows
from app.core.datasets import Reference


class Body(NamedTuple):
    """The body of a request, and those of its headers that the format reads."""

    content: bytes
    headers: Mapping[str, str] = {}
    """By the names that the format has for them; those that did not come are missing."""


Posted = dict[str, PostedRows | Reference]
"""Rows that came, or a dataset named in their place, by the names they have in a JSON request."""

Encoded = list[bytes | memoryview] | Iterator[bytes]
"""A list where the bytes lie ready; else pieces, each made when it is asked for, without holding up other requests."""


class Format(ABC):
    """One media type, for the rows of requests and the arrays of answers.

    Reading raises InvalidInput where the bytes are not what the media type says.
    """

    media_type: ClassVar[str]
    request_headers: ClassVar[Mapping[str, str]] = {}
    """Headers of a request, beside Content-Type, that are needed to read its body: by name, what they say."""
    rows_described: ClassVar[str] = ""
    """How rows come in this format, one sentence for the OpenAPI document; JSON has schemas there instead."""

    @abstractmethod
    def decode(self, body: Body, width: int, wanted: str, optional: Sequence[str] = ()) -> Posted:
        """Read rows of vectors.

        Args:
            body: the whole of it.
            width: entries of a row.
            wanted: name of the member that must be there.
            optional: names of members that may be there too.
        """

    @abstractmethod
    def matrix(self, body: Body) -> PostedRows:
        """Read rows whose width the body itself tells.

        Args:
            body: the whole of it.
        """

    @abstractmethod
    def encode(self, answer: Answer) -> Encoded:
        """Write the answer."""
