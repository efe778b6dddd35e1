"""The base of the files in which maps are taken away."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from app.core.answers import RowBlocks, in_parts
from app.core.arrays import Array, octets
from app.core.maps.terms import TakenMap
from app.formats.base import Encoded


class MapFile(ABC):
    """A kind of file that holds a map."""

    media_type: ClassVar[str]
    described: ClassVar[str]
    """What it holds and who reads it, for the OpenAPI document."""

    @abstractmethod
    def write(self, taken: TakenMap) -> Encoded:
        """Write a map, in pieces none of which is a copy of a large array.

        Raises:
            InvalidOption: such a file cannot hold it; the words say which can.
        """


def numbers(array: Array | RowBlocks) -> Iterator[memoryview]:
    """The bytes of an array, with blocks as they are made."""
    return map(octets, in_parts(array))
