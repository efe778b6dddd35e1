"""Rows as an adviser compares them: a byte a hash, of which shorter and fewer codes are made."""

from typing import NamedTuple

import numpy as np

from app.core.arrays import Matrix, Rows, row_blocks
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import CodeLaw
from app.core.indexes.equal_runs import HashBytes
from app.core.indexes.scanning import PackedCodes
from app.core.maps import FeatureMap
from app.core.progress import Pause

# Rows that are hashed between two pauses, some hundredths of a second.
_HASHES_PER_BLOCK = 1 << 19
# What is packed at a time.
_CODES_PER_BLOCK = 1 << 22


class Law(NamedTuple):
    """How codes of the rows of a map tell of their kernel."""

    of_codes: CodeLaw

    @property
    def bits(self) -> int:
        """Of a hash, as indexes keep it."""
        return self.of_codes.encoder.bits

    @property
    def widths(self) -> tuple[int, ...]:
        """Bits of a hash that codes could have."""
        return tuple(bits for bits in (8, 4, 2, 1) if bits <= self.bits)

    def rates(self, similarities: Matrix) -> Matrix:
        """How often hashes of pairs of rows agree."""
        return self.of_codes.rates(similarities)


def law_of(feature_map: FeatureMap) -> Law:
    """The law of a map's codes; InvalidInput for a map without codes, or with such as do not tell its kernel."""
    try:
        return Law(feature_map.code_law("the map"))
    except InvalidInput as error:
        raise InvalidInput(error.detail, "/map") from None


def hashed(feature_map: FeatureMap, rows: Rows, pause: Pause) -> HashBytes:
    """The codes of rows that have some, (n, s)."""
    n, s = rows.shape[0], feature_map.n_frequencies
    found, by = np.empty((n, s), np.uint8), law_of(feature_map).of_codes.encoder
    for block in row_blocks(n, _HASHES_PER_BLOCK // s):
        pause()
        found[block] = by.unpacked(feature_map.codes(rows[block], by, "/dataset", pause), s)
    return found


def packed_codes(codes: HashBytes, bits: int) -> PackedCodes:
    """The lowest bits, 1, 2, 4 or 8, of codes (n, s) as the encoding `packed` has them, (n, ⌈s·bits/8⌉)."""
    n, s = codes.shape
    per_byte = 8 // bits
    found = np.zeros((n, -(-s // per_byte)), np.uint8)
    for block in row_blocks(n, _CODES_PER_BLOCK // s):
        for at in range(per_byte):
            some = codes[block, at::per_byte] & np.uint8((1 << bits) - 1)
            found[block, : some.shape[1]] |= some << np.uint8(at * bits)
    return found
