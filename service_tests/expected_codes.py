"""Codes from pairs (i*, t*), worked out in plain Python from what the contract says."""

from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from service_tests.checks import array, post_npy

X = np.array([[0.5, -1.25, 2], [0, 0.5, 0], [3, 0, -0.125]], np.float32)
Y = np.array([[0.5, -1, 2], [0, 0.25, 0], [-3, 0, 0.125]], np.float32)

ENCODINGS = ["pairs", "zero_bit", "b_bit", "packed", "one_hot", "fingerprint"]
QUERIES = [
    "encoding=pairs",
    "encoding=zero_bit",
    *(
        f"encoding={encoding}&bits={bits}&bits_of={bits_of}"
        for encoding in ("b_bit", "packed", "one_hot")
        for bits in (1, 5, 8, 9, 16)
        for bits_of in ("index", "mixed_index", "pair")
    ),
    "encoding=fingerprint&bits=32",
    "encoding=fingerprint&bits=64",
]
"""Every encoding, with bits that fill bytes and bits that do not."""

_WORD = (1 << 64) - 1


def mixed(word: int) -> int:
    """The fixed hash: SplitMix64's output for the state `word`."""
    word = (word + 0x9E3779B97F4A7C15) & _WORD
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & _WORD
    return word ^ word >> 31


def expected(pairs: Any, query: str) -> list[list[Any]]:
    """Rows of codes of rows of pairs."""
    options = dict(option.split("=") for option in query.split("&"))
    encoding, bits_of = options["encoding"], options.get("bits_of", "index")
    bits = int(options.get("bits", 64 if encoding == "fingerprint" else 8))
    return [_row([(int(i), int(t)) for i, t in row], encoding, bits, bits_of) for row in pairs]


def _row(pairs: list[tuple[int, int]], encoding: str, bits: int, bits_of: str) -> list[Any]:
    if encoding == "pairs":
        return [list(pair) for pair in pairs]
    if encoding == "zero_bit":
        return [i for i, _ in pairs]
    whole = {
        "index": [i for i, _ in pairs],
        "mixed_index": [mixed((mixed(j) + i) & _WORD) for j, (i, _) in enumerate(pairs)],
        "pair": [mixed((mixed((mixed(j) + i) & _WORD) + t) & _WORD) for j, (i, t) in enumerate(pairs)],
    }["pair" if encoding == "fingerprint" else bits_of]
    codes = [word % (1 << bits) for word in whole]
    if encoding == "one_hot":
        return [j * 2**bits + code for j, code in enumerate(codes)]
    if encoding == "packed":
        # One long number with the code of hash 0 in its lowest bits, cut into bytes.
        number = sum(code << (j * bits) for j, code in enumerate(codes))
        return list(number.to_bytes(-(-len(codes) * bits // 8), "little"))
    return codes


def hashed(http: httpx.Client, name: str, rows: NDArray[Any], query: str) -> NDArray[Any]:
    """Codes of dense rows, from .npy to .npy."""
    return array(post_npy(http, f"{name}/codes?{query}", rows))


def sparse(rows: Any) -> list[dict[str, Any]]:
    """Dense rows as a client writes sparse ones."""
    return [{"indices": np.flatnonzero(row).tolist(), "values": np.asarray(row)[row != 0].tolist()} for row in rows]
