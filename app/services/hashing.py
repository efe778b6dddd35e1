"""What is done with vectors and codes of maps with kernel gmm: codes, similarities."""

from enum import StrEnum
from typing import Any

import numpy as np

from app.core.arrays import Array, row_blocks
from app.core.errors import InvalidInput, InvalidOption
from app.core.hashing.encodings import BitsOf, Codes, Encoder, Encoding, encoder
from app.core.hashing.estimates import Estimate, collision_rate, kernel_estimate, rbf_estimate
from app.core.maps import ConsistentSamplingMap
from app.core.maps.consistent_sampling import refuse_unsampled
from app.formats import Answer, Format, OneHot
from app.formats.json import codes, csr_codes, members
from app.formats.json_rows import is_reference, rows_or_reference
from app.services.datasets import Datasets
from app.services.limits import Limits
from app.services.maps import Maps

# Codes held at a time while pairs of vectors are compared.
_CODES_PER_BLOCK = 1 << 20


class OnZero(StrEnum):
    """What to do with a row that is all zero, which no hash can sample: refuse the request, or mark its codes -1."""

    refuse = "refuse"
    mark = "mark"


class Hashing:
    """Hashes posted vectors, or rows of a dataset named in their place, and compares codes.

    Methods raise what Maps.ready and Datasets.rows raise, InvalidInput and TooLarge.
    """

    def __init__(self, maps: Maps, datasets: Datasets, limits: Limits) -> None:
        self._maps = maps
        self._datasets = datasets
        self._limits = limits

    def codes(self, name: str, form: Format, body: bytes, written: Encoder) -> Answer:
        """Codes of the posted vectors, in their order."""
        sampling = self._sampling(name)
        spec, s = sampling.spec, sampling.n_output
        posted = form.decode(body, spec.input_dim, "vectors")["vectors"]
        x = spec.gate(self._datasets.resolved(posted), "/vectors")
        shape, dtype = written.row(s, spec.input_dim)
        self._limits.check_result(x.shape[0] * int(np.prod(shape)) * dtype.itemsize)
        self._limits.check_operations(sampling.hash_operations(x))
        hashed = sampling.codes(x, written)
        return {"codes": OneHot(hashed, s << written.bits) if written.encoding is Encoding.one_hot else hashed}

    def similarity(
        self,
        name: str,
        body: bytes,
        encoding: Encoding | None,
        bits: int | None,
        bits_of: BitsOf | None,
        gamma: float | None,
    ) -> Answer:
        """Estimated kernel of row i of x with row i of y.

        Args:
            name: of a map with kernel gmm.
            body: JSON with x and y, vectors (a named dataset may stand in their place) or codes.
            encoding: how x and y encode codes, or which codes of vectors to compare. Without it, rows of pairs and rows
                of s whole numbers, where s is not the length of a vector, are read as codes, all else as vectors.
            bits: of the encoding.
            bits_of: of the encoding.
            gamma: of the RBF kernel to estimate too.
        """
        sampling = self._sampling(name)
        if gamma is not None and sampling.kernel.p != 1:
            raise InvalidOption(
                f"gamma is for the min-max kernel of power 1; this map has {sampling.kernel.p}", "gamma"
            )
        if encoding is None and (bits, bits_of) != (None, None):
            raise InvalidOption("bits and bits_of belong to an encoding, and none came", "encoding")
        posted = members(body, ["x", "y"])
        named = any(is_reference(posted[k]) for k in ("x", "y"))
        recognised = None if named else _recognised(posted["x"], sampling)
        by = encoder(encoding or recognised or Encoding.pairs, bits, bits_of)
        if named or (recognised is None if encoding is None else _can_only_be_vectors(posted["x"], by, sampling)):
            return self._of_vectors(sampling, posted, by, gamma)
        return _of_codes(sampling, posted, by, gamma)

    def _of_vectors(
        self, sampling: ConsistentSamplingMap, posted: dict[str, Any], by: Encoder, gamma: float | None
    ) -> dict[str, Array]:
        spec, s = sampling.spec, sampling.n_output
        given = {k: rows_or_reference(posted[k], spec.input_dim, f"/{k}") for k in ("x", "y")}
        x, y = (spec.gate(self._datasets.resolved(rows), f"/{k}") for k, rows in given.items())
        _check_paired(x, y)
        self._limits.check_result(sampling.exact_bytes(x, y))
        self._limits.check_operations(sampling.hash_operations(x) + sampling.hash_operations(y))
        sampling.refuse_unsampled(x, "/x")
        sampling.refuse_unsampled(y, "/y")
        # Hash by hash, however many of them share a byte.
        compared = by._replace(encoding=Encoding.b_bit) if by.encoding is Encoding.packed else by
        rate, zero_bit, exact, rbf = (np.empty(x.shape[0]) for _ in range(4))
        for block in row_blocks(x.shape[0], _CODES_PER_BLOCK // s):
            x_samples, y_samples = sampling.codes(x[block]), sampling.codes(y[block])
            rate[block] = collision_rate(compared.encode(x_samples), compared.encode(y_samples))
            zero_bit[block] = collision_rate(x_samples[..., 0], y_samples[..., 0])
            exact[block] = sampling.exact_pairs(x[block], y[block])
            if gamma is not None:
                rbf[block] = sampling.rbf_pairs(x[block], y[block], gamma)
        answer = _estimates(kernel_estimate(rate, s, by.chance()), gamma) | {"exact": exact, "zero_bit": zero_bit}
        return answer if gamma is None else answer | {"rbf_exact": rbf}

    def _sampling(self, name: str) -> ConsistentSamplingMap:
        sampling = self._maps.ready(name)
        if not isinstance(sampling, ConsistentSamplingMap):
            kind = sampling.spec.kernel.kind
            raise InvalidInput(
                f"map {name!r} has kernel {kind}; codes come from maps with kernel gmm: POST to /transform"
            )
        return sampling


def _of_codes(
    sampling: ConsistentSamplingMap, posted: dict[str, Any], by: Encoder, gamma: float | None
) -> dict[str, Array]:
    x, y = (_posted_codes(posted[k], by, sampling, f"/{k}") for k in ("x", "y"))
    _check_paired(x, y)
    s = sampling.n_output
    if by.encoding is Encoding.packed:
        x, y = by.unpacked(x, s), by.unpacked(y, s)
    return _estimates(kernel_estimate(collision_rate(x, y), s, by.chance()), gamma)


def _estimates(estimate: Estimate, gamma: float | None) -> dict[str, Array]:
    answer = {"estimate": estimate.value, "standard_error": estimate.standard_error}
    if gamma is not None:
        rbf = rbf_estimate(estimate, gamma)
        answer |= {"rbf_estimate": rbf.value, "rbf_standard_error": rbf.standard_error}
    return answer


def _posted_codes(value: Any, by: Encoder, sampling: ConsistentSamplingMap, pointer: str) -> Codes:
    """Codes as `Hashing.codes` gives them; InvalidInput where none can be such."""
    s, input_dim = sampling.n_output, sampling.spec.input_dim
    shape, dtype = by.row(s, input_dim)
    if by.encoding is Encoding.one_hot and isinstance(value, dict):
        read = csr_codes(value, s, s << by.bits, pointer)
    else:
        read = codes(value, shape, dtype, pointer)
    refuse_unsampled(read, pointer)
    if read.dtype != np.uint64:  # which has no others
        first, count = by.ends(s, input_dim)
        index = (read[..., 0] if by.encoding is Encoding.pairs else read) - first
        wrong = np.flatnonzero(((index < 0) | (index >= count)).any(axis=1))
        if wrong.size:
            raise InvalidInput(
                f"row {wrong[0]} has numbers that are no codes of encoding {by.encoding.value}", f"{pointer}/{wrong[0]}"
            )
    return read.astype(np.uint8) if by.encoding is Encoding.packed else read


def _check_paired(x: Any, y: Any) -> None:
    if x.shape[0] != y.shape[0]:
        raise InvalidInput(f"x has {x.shape[0]} rows and y {y.shape[0]}; row i of x goes with row i of y", "/y")


def _first_row(posted: Any) -> Any:
    return posted[0] if isinstance(posted, list) and posted else None


def _recognised(posted: Any, sampling: ConsistentSamplingMap) -> Encoding | None:
    """The encoding of codes that cannot be vectors."""
    row = _first_row(posted)
    if not isinstance(row, list) or not row:
        return None
    if isinstance(row[0], list):
        return Encoding.pairs
    whole = set(map(type, row)) == {int}
    return Encoding.zero_bit if whole and len(row) == sampling.n_output != sampling.spec.input_dim else None


def _can_only_be_vectors(posted: Any, by: Encoder, sampling: ConsistentSamplingMap) -> bool:
    row = _first_row(posted)
    if not isinstance(row, list):
        return isinstance(row, dict)
    code_length = by.row(sampling.n_output, sampling.spec.input_dim)[0][0]
    as_codes = len(row) == code_length and set(map(type, row)) == {list if by.encoding is Encoding.pairs else int}
    return len(row) == sampling.spec.input_dim and not as_codes
