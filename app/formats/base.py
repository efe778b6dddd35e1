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

Posted = dict[str, Array | sparse.csr_array]
"""What came, by the names it has in a JSON request; not yet through the gate."""


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

    def encode(self, answer: Answer) -> Encoded:
        """Write the answer."""
