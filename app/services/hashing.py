"""Codes of vectors, and similarities of vectors or of codes.

Functions raise InvalidInput for rows that cannot be hashed or compared, and TooLarge where a limit is passed.
"""

from enum import StrEnum

from app.core.answers import Answer, OneHot
from app.core.arrays import Rows
from app.core.errors import InvalidInput, InvalidOption
from app.core.hashing.encodings import CodeOptions, Codes, Encoder, Encoding
from app.core.maps import FeatureMap
from app.services import results
from app.services.limits import Limits


class OnZero(StrEnum):
    """A row that is all zero has no codes: either the request is refused, or the row is marked with codes of -1."""

    refuse = "refuse"
    mark = "mark"


def codes(hashing: FeatureMap, x: Rows, written: Encoder, limits: Limits, per_number: int) -> Answer:
    """Codes of the vectors, in their order; `per_number` as in `vectors.transform`."""
    s = hashing.n_frequencies

    def check() -> None:
        if not written.marked:
            hashing.check_rows(x, "/vectors")

    row = written.row(s, hashing.spec.input_dim)
    operations = hashing.operations(x)
    hashed = results.made(x, row, operations, per_number, limits, check, lambda rows: hashing.codes(rows, written))
    if written.encoding is not Encoding.one_hot:
        return {"codes": hashed}
    return {"codes": OneHot(hashed, s << written.bits, ~hashing.uncoded(x))}


def comparison(hashing: FeatureMap, options: CodeOptions, gamma: float | None) -> Encoder | None:
    """How the codes of a similarity are written; None if the client does not say.

    Raises:
        InvalidOption: the options do not go together, or not with this map.
    """
    if gamma is not None and (refusal := hashing.gamma_refusal()) is not None:
        raise InvalidOption(refusal, "gamma")
    if options.encoding is None and options != CodeOptions():
        raise InvalidOption("bits, bits_of and rows_per_band belong to an encoding, and none came", "encoding")
    return None if options.encoding is None else hashing.encoder_of(options)


def similarity_of_vectors(
    hashing: FeatureMap, x: Rows, y: Rows, by: Encoder, gamma: float | None, limits: Limits
) -> Answer:
    """The kernel of row i of x with row i of y: estimated from codes, and exact.

    `by` says which codes to compare. With a gamma, the RBF kernel is estimated too.
    """
    _check_paired(x, y)
    limits.check_result(hashing.kernel.exact_bytes(x, y))
    limits.check_operations(hashing.operations(x) + hashing.operations(y), x.shape[0])
    hashing.check_rows(x, "/x")
    hashing.check_rows(y, "/y")
    return {**hashing.similarity(x, y, by, gamma)}


def similarity_of_codes(hashing: FeatureMap, x: Codes, y: Codes, by: Encoder, gamma: float | None) -> Answer:
    """The kernel of row i of x with row i of y, estimated from codes that are written as `by` says."""
    _check_paired(x, y)
    return {**hashing.similarity_of_codes(x, y, by, gamma)}


def _check_paired(x: Rows | Codes, y: Rows | Codes) -> None:
    if x.shape[0] != y.shape[0]:
        raise InvalidInput(f"x has {x.shape[0]} rows and y {y.shape[0]}; row i of x goes with row i of y", "/y")
