"""Codes of vectors, and similarities of vectors or of codes.

Functions raise InvalidInput for rows that cannot be hashed or compared, and TooLarge where a limit is passed.
"""

from enum import StrEnum

import numpy as np

from app.core.answers import Answer, OneHot
from app.core.arrays import Array, Matrix, Rows, Whole, row_blocks
from app.core.errors import InvalidInput, InvalidOption
from app.core.hashing import estimates
from app.core.hashing.encodings import BitsOf, Codes, Encoder, Encoding, encoder
from app.core.maps import FeatureMap
from app.services import results
from app.services.limits import Limits

# The most codes that are held while pairs of vectors are compared.
_CODES_PER_BLOCK = 1 << 20


class OnZero(StrEnum):
    """A row that is all zero has no codes: either the request is refused, or the row is marked with codes of -1."""

    refuse = "refuse"
    mark = "mark"


def codes(sampling: FeatureMap, x: Rows, written: Encoder, limits: Limits, per_number: int) -> Answer:
    """Codes of the vectors, in their order; `per_number` as in `vectors.transform`."""
    s = sampling.n_output

    def check() -> None:
        if not written.marked:
            sampling.check_rows(x, "/vectors")

    row = written.row(s, sampling.spec.input_dim)
    operations = sampling.operations(x)
    hashed = results.made(x, row, operations, per_number, limits, check, lambda rows: sampling.codes(rows, written))
    if written.encoding is not Encoding.one_hot:
        return {"codes": hashed}
    return {"codes": OneHot(hashed, s << written.bits, ~sampling.uncoded(x))}


def comparison(
    sampling: FeatureMap, encoding: Encoding | None, bits: int | None, bits_of: BitsOf | None, gamma: float | None
) -> Encoder | None:
    """How the codes of a similarity are written; None if the client does not say.

    Raises:
        InvalidOption: the options do not go together, or not with this map.
    """
    if gamma is not None and (refusal := sampling.gamma_refusal()) is not None:
        raise InvalidOption(refusal, "gamma")
    if encoding is None and (bits, bits_of) != (None, None):
        raise InvalidOption("bits and bits_of belong to an encoding, and none came", "encoding")
    return None if encoding is None else encoder(encoding, bits, bits_of)


def similarity_of_vectors(
    sampling: FeatureMap, x: Rows, y: Rows, by: Encoder, gamma: float | None, limits: Limits
) -> Answer:
    """The kernel of row i of x with row i of y: estimated from codes, and exact.

    `by` says which codes to compare. With a gamma, the RBF kernel is estimated too. As the rows are at hand, so is the
    bias of the estimates, which intervals are freed from.
    """
    _check_paired(x, y)
    limits.check_result(sampling.kernel.exact_bytes(x, y))
    limits.check_operations(sampling.operations(x) + sampling.operations(y), x.shape[0])
    sampling.check_rows(x, "/x")
    sampling.check_rows(y, "/y")
    x, y = sampling.kernel.in_one_form(x, y)
    # Packed codes are compared unpacked, one by one.
    compared = by._replace(encoding=Encoding.b_bit) if by.encoding is Encoding.packed else by
    n, s = x.shape[0], sampling.n_output
    agree = estimates.Agreements.none(n)
    exact, true_chance, rbf = np.empty(n), np.empty(n), np.empty(n)
    for block in row_blocks(n, _CODES_PER_BLOCK // s):
        for counted, more in zip(agree, sampling.agreements(x[block], y[block], compared), strict=True):
            counted[block] = more
        exact[block] = sampling.exact_pairs(x[block], y[block])
        true_chance[block] = sampling.chances(x[block], y[block], compared)
        if gamma is not None:
            rbf[block] = sampling.rbf_pairs(x[block], y[block], gamma)
    chance = estimates.chances(compared, sampling.spec.input_dim, s, agree.odd_x, agree.odd_y)
    bias = estimates.kernel_bias(exact, chance, true_chance)
    answer = _estimates(agree.codes, chance, s, gamma) | {"exact": exact, "zero_bit": agree.zero_bit / s}
    interval = estimates.kernel_interval(agree.codes, s, chance, bias)
    if gamma is None:
        return answer | {"bias": bias, "interval": interval}
    link_bias = estimates.rbf_bias(exact, bias, rbf, gamma)
    of_mean = estimates.kernel_interval(agree.codes, s, chance)
    of_rbf = {"rbf_bias": link_bias, "rbf_interval": estimates.rbf_interval(of_mean, link_bias, gamma)}
    return answer | {"rbf_exact": rbf, "bias": bias, "interval": interval} | of_rbf


def similarity_of_codes(sampling: FeatureMap, x: Codes, y: Codes, by: Encoder, gamma: float | None) -> Answer:
    """The kernel of row i of x with row i of y, estimated from codes that are written as `by` says."""
    _check_paired(x, y)
    s = sampling.n_output
    if by.encoding is Encoding.packed:
        x, y = (by.unpacked(rows, s) for rows in (x, y))
    odd_x, odd_y = (estimates.odd_codes(by, rows) for rows in (x, y))
    counts = estimates.collisions(x, y)
    chance = estimates.chances(by, sampling.spec.input_dim, s, odd_x, odd_y)
    return _estimates(counts, chance, s, gamma) | {"interval": estimates.kernel_interval(counts, s, chance)}


def _estimates(counts: Whole, chance: Matrix, s: int, gamma: float | None) -> dict[str, Array]:
    """Estimates with the errors of sampling, from how many of s codes agree, and how often they do by chance."""
    estimate = estimates.kernel_estimate(counts / s, s, chance)
    answer: dict[str, Array] = {"estimate": estimate.value, "standard_error": estimate.standard_error}
    if gamma is not None:
        rbf = estimates.rbf_estimate(estimate, gamma)
        answer |= {"rbf_estimate": rbf.value, "rbf_standard_error": rbf.standard_error}
    return answer


def _check_paired(x: Rows | Codes, y: Rows | Codes) -> None:
    if x.shape[0] != y.shape[0]:
        raise InvalidInput(f"x has {x.shape[0]} rows and y {y.shape[0]}; row i of x goes with row i of y", "/y")
