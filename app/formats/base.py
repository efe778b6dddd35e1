"""What a format must do."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from scipy import sparse

from app.core.arrays import Array


class OneHot(NamedTuple):
    """Sparse rows of ones: the column indices of each, (n, s), −1 throughout for a row without any."""

    columns: Array
    n_columns: int

    @property
    def nbytes(self) -> int:
        """Size of the column indices."""
        return self.columns.nbytes


Answer = Mapping[str, Array | OneHot]
"""Arrays by the names they have in a JSON answer, rows first."""


class Reference(NamedTuple):
    """Rows of a dataset, named where vectors could stand."""

    dataset: str
    rows: int | None
    """Size of the sample; None for all rows."""
    seed: int
    pointer: str
    """Where the reference stood in the request."""


Matrix = Array | sparse.csr_array
"""Rows as they came, not yet through the gate."""

Posted = dict[str, Matrix | Reference]
"""What came, by the names it has in a JSON request."""


Encoded = list[bytes | memoryview] | Iterator[bytes]
"""A list where the bytes lie ready; else pieces, each made when it is asked for, without holding up other requests."""


class Format(Protocol):
    """One media type. Decoding raises InvalidInput where the bytes are not what the media type says."""

    media_type: str

    def decode(self, body: bytes, width: int, wanted: str, optional: Sequence[str] = ()) -> Posted:
        """Read rows of vectors.

        Args:
            body: the whole request body.
            width: entries of a row.
            wanted: name of the member that must be there.
            optional: names of members that may be there too.
        """

    def matrix(self, body: bytes) -> Matrix:
        """Read rows whose width the body itself tells.

        Args:
            body: the whole request body.
        """

    def encode(self, answer: Answer) -> Encoded:
        """Write the answer."""
