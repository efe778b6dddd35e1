"""What is done with vectors and codes of maps with kernel gmm: codes, similarities."""

from enum import StrEnum
from typing import Any

import numpy as np

from app.core.arrays import Array, row_blocks
from app.core.errors import InvalidInput, InvalidOption
from app.core.hashing.encodings import BitsOf, Codes, Encoder, Encoding, encoder
from app.core.hashing.estimates import (
    Agreements,
    Counts,
    Numbers,
    chances,
    collision_rate,
    kernel_estimate,
    odd_codes,
    rbf_estimate,
)
from app.core.maps import FeatureMap
from app.core.maps.base import Gives
from app.core.maps.consistent_sampling import refuse_unsampled
from app.formats import Answer, Format, OneHot
from app.formats.json import bytes_per_row, codes, csr_codes, members
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


class InputKind(StrEnum):
    """What x and y of a similarity are."""

    vectors = "vectors"
    codes = "codes"


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
        of: InputKind | None = None,
    ) -> Answer:
        """Estimated kernel of row i of x with row i of y.

        Args:
            name: of a map with kernel gmm.
            body: JSON with x and y, vectors (a named dataset may stand in their place) or codes.
            encoding: how x and y encode codes, or which codes of vectors to compare. Without it, vectors are compared
                by pairs, and codes are pairs if their rows are lists of lists, else zero_bit.
            bits: of the encoding.
            bits_of: of the encoding.
            gamma: of the RBF kernel to estimate too.
            of: what x and y are. Without it they are what their length allows; where it allows both, InvalidOption,
                or vectors if no encoding is named.
        """
        sampling = self._sampling(name)
        if gamma is not None and (refusal := sampling.gamma_refusal()) is not None:
            raise InvalidOption(refusal, "gamma")
        if encoding is None and (bits, bits_of) != (None, None):
            raise InvalidOption("bits and bits_of belong to an encoding, and none came", "encoding")
        by = None if encoding is None else encoder(encoding, bits, bits_of)
        posted = members(body, ["x", "y"], bytes_per_list=_bytes_per_list(by, of, sampling))
        if of is None and any(is_reference(posted[k]) for k in ("x", "y")):
            of = InputKind.vectors
        if by is None:
            recognised = _recognised(posted["x"], of, sampling)
            are_codes, by = recognised is not None, Encoder(recognised or Encoding.pairs)
        else:
            are_codes = _are_codes(posted["x"], by, sampling) if of is None else of is InputKind.codes
        return (_of_codes if are_codes else self._of_vectors)(sampling, posted, by, gamma)

    def _of_vectors(
        self, sampling: FeatureMap, posted: dict[str, Any], by: Encoder, gamma: float | None
    ) -> dict[str, Array]:
        spec, s = sampling.spec, sampling.n_output
        given = {k: rows_or_reference(posted[k], spec.input_dim, f"/{k}") for k in ("x", "y")}
        x, y = (spec.gate(self._datasets.resolved(rows), f"/{k}") for k, rows in given.items())
        _check_paired(x, y)
        self._limits.check_result(sampling.exact_bytes(x, y))
        self._limits.check_operations(sampling.hash_operations(x) + sampling.hash_operations(y))
        sampling.check_rows(x, "/x")
        sampling.check_rows(y, "/y")
        x, y = sampling.in_one_form(x, y)
        # Hash by hash, however many of them share a byte.
        compared = by._replace(encoding=Encoding.b_bit) if by.encoding is Encoding.packed else by
        agree = Agreements.none(x.shape[0])
        exact, rbf = np.empty(x.shape[0]), np.empty(x.shape[0])
        for block in row_blocks(x.shape[0], _CODES_PER_BLOCK // s):
            for counted, more in zip(agree, sampling.agreements(x[block], y[block], compared), strict=True):
                counted[block] = more
            exact[block] = sampling.exact_pairs(x[block], y[block])
            if gamma is not None:
                rbf[block] = sampling.rbf_pairs(x[block], y[block], gamma)
        estimated = _estimates(agree.codes / s, agree.odd_x, agree.odd_y, compared, sampling, gamma)
        answer = estimated | {"exact": exact, "zero_bit": agree.zero_bit / s}
        return answer if gamma is None else answer | {"rbf_exact": rbf}

    def _sampling(self, name: str) -> FeatureMap:
        sampling = self._maps.ready(name)
        sampling.check_gives(Gives.codes, f"map {name!r}")
        return sampling


def _of_codes(sampling: FeatureMap, posted: dict[str, Any], by: Encoder, gamma: float | None) -> dict[str, Array]:
    x, y = (_posted_codes(posted[k], by, sampling, f"/{k}") for k in ("x", "y"))
    _check_paired(x, y)
    if by.encoding is Encoding.packed:
        x, y = (by.unpacked(rows, sampling.n_output) for rows in (x, y))
    return _estimates(collision_rate(x, y), odd_codes(by, x), odd_codes(by, y), by, sampling, gamma)


def _estimates(
    rate: Numbers, odd_x: Counts, odd_y: Counts, by: Encoder, sampling: FeatureMap, gamma: float | None
) -> dict[str, Array]:
    s = sampling.n_output
    estimate = kernel_estimate(rate, s, chances(by, sampling.spec.input_dim, s, odd_x, odd_y))
    answer: dict[str, Array] = {"estimate": estimate.value, "standard_error": estimate.standard_error}
    if gamma is not None:
        rbf = rbf_estimate(estimate, gamma)
        answer |= {"rbf_estimate": rbf.value, "rbf_standard_error": rbf.standard_error}
    return answer


def _posted_codes(value: Any, by: Encoder, sampling: FeatureMap, pointer: str) -> Codes:
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


def _recognised(posted: Any, of: InputKind | None, sampling: FeatureMap) -> Encoding | None:
    """The encoding of codes whose encoding was not named; None for vectors."""
    row = _first_row(posted)
    if of is InputKind.vectors or not isinstance(row, list) or not row:
        return Encoding.zero_bit if of is InputKind.codes else None
    if isinstance(row[0], list):
        return Encoding.pairs
    whole = set(map(type, row)) == {int}
    only_codes = whole and len(row) == sampling.n_output != sampling.spec.input_dim
    return Encoding.zero_bit if only_codes or of is InputKind.codes else None


def _are_codes(posted: Any, by: Encoder, sampling: FeatureMap) -> bool:
    """Whether rows are codes that `by` made, and not vectors, by their length alone: 2 and 2.0 mean the same."""
    row, input_dim = _first_row(posted), sampling.spec.input_dim
    if not isinstance(row, list) or len(row) != input_dim:
        return not isinstance(row, dict)
    if by.encoding is Encoding.pairs:
        return isinstance(row[0], list)
    if by.row(sampling.n_output, input_dim)[0] != (input_dim,):
        return False
    raise InvalidOption(
        f"rows of {input_dim} numbers came, which vectors of this map and its codes of encoding {by.encoding.value} "
        "both have; say of=vectors or of=codes",
        "of",
    )


def _bytes_per_list(by: Encoder | None, of: InputKind | None, sampling: FeatureMap) -> float:
    """The fewest bytes of JSON that a body has for each list in it."""
    s, input_dim = sampling.n_output, sampling.spec.input_dim
    of_vectors: float = bytes_per_row(input_dim)
    of_codes: float
    if by is None or by.encoding is Encoding.pairs:
        # A row of [0,0] s times is s + 1 lists.
        of_codes = (len("[0,0],") * s + len("[]")) / (s + 1)
    else:
        of_codes = bytes_per_row(by.row(s, input_dim)[0][0])
    return {InputKind.vectors: of_vectors, InputKind.codes: of_codes, None: min(of_vectors, of_codes)}[of]
