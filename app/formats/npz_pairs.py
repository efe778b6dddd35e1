"""Bodies of similarities in .npz: pairs of vectors, or pairs of codes."""

import numpy as np

from app.core.arrays import Array
from app.core.errors import InvalidInput
from app.core.hashing.encodings import Codes, Encoder
from app.core.maps import FeatureMap
from app.formats.base import Body
from app.formats.npz import members
from app.formats.pairs import InputKind, Pairs, checked, unclear, usual


def pairs(body: Body, hashing: FeatureMap, by: Encoder | None, of: InputKind | None) -> Pairs:
    """Read x and y, see `ReadPairs`."""
    posted = members(body, ["x", "y"])
    are_codes = _are_codes(posted["x"], by, hashing) if of is None else of is InputKind.codes
    if not are_codes:
        return by or hashing.usual_encoders[0], {**posted}
    by = by or usual(hashing, posted["x"].ndim - 1) or hashing.usual_encoders[-1]
    return by, (_codes(posted["x"], by, hashing, "/x"), _codes(posted["y"], by, hashing, "/y"))


def _are_codes(x: Array, by: Encoder | None, hashing: FeatureMap) -> bool:
    """Whether an array is of codes, and not of vectors: fractions are vectors, pairs are codes, else lengths decide."""
    if x.dtype.kind not in "iu" or x.ndim not in (2, 3):
        return False
    input_dim = hashing.spec.input_dim
    if x.ndim == 3 or x.shape[1] != input_dim:
        return by is not None or usual(hashing, x.ndim - 1, None if x.ndim == 3 else x.shape[1]) is not None
    if by is None or by.row(hashing.n_frequencies, input_dim)[0] != (input_dim,):
        return False
    raise unclear(by, hashing)


def _codes(came: Array, by: Encoder, hashing: FeatureMap, pointer: str) -> Codes:
    row, dtype = by.row(hashing.n_frequencies, hashing.spec.input_dim)
    if came.dtype.kind not in "iu" or came.shape[1:] != row:
        wanted = f"whole numbers of shape (rows, {', '.join(map(str, row))})"
        raise InvalidInput(f"an array of {came.dtype} and shape {came.shape} came; {wanted} are wanted", pointer)
    # Numbers of fewer bits are left as they are: with eight bytes each they would take much more than they came in.
    if np.uint64 in (dtype, came.dtype):
        wide = np.dtype(np.uint64 if dtype == np.uint64 else np.int64)
        ends = np.iinfo(wide)
        if came.size and not ends.min <= int(came.min()) <= int(came.max()) <= ends.max:
            raise InvalidInput(f"a number outside the range of {wide} came", pointer)
        came = came.astype(wide)
    return checked(came, by, hashing, pointer)
