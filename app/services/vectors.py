"""What is done with posted vectors: features, Gram blocks, codes, similarities."""

from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Rows, row_blocks, vectors
from app.core.errors import InvalidInput
from app.core.maps import ConsistentSamplingMap, FourierMap
from app.core.maps.consistent_sampling import Codes, refuse_unsampled
from app.formats import Answer, Format
from app.formats.json import codes, members, rows
from app.services.limits import Limits
from app.services.maps import Maps

# Codes held at a time while pairs of vectors are compared.
_CODES_PER_BLOCK = 1 << 20


class Encoding(StrEnum):
    """How codes are written. pairs: (i*, t*). zero_bit: i* alone."""

    pairs = "pairs"
    zero_bit = "zero_bit"


class OnZero(StrEnum):
    """What to do with a row that is all zero, which no hash can sample: refuse the request, or mark its codes -1."""

    refuse = "refuse"
    mark = "mark"


class Vectors:
    """Applies maps to posted vectors. Methods raise what Maps.ready raises, InvalidInput and TooLarge."""

    def __init__(self, maps: Maps, limits: Limits) -> None:
        self._maps = maps
        self._limits = limits

    def transform(self, name: str, form: Format, body: bytes) -> Answer:
        """Features of the posted vectors, in their order; beside them the map's signature, if it has one."""
        feature_map = self._maps.ready(name)
        if not isinstance(feature_map, FourierMap):
            raise InvalidInput(f"map {name!r} has kernel gmm, which gives codes, not features: POST to /codes")
        posted = form.decode(body, feature_map.spec.input_dim, "vectors")["vectors"]
        x = _gate(feature_map, posted, "/vectors")
        self._limits.check_result(x.shape[0] * feature_map.n_output * feature_map.feature_dtype.itemsize)
        self._limits.check_operations(x.size * feature_map.n_frequencies)
        answer: dict[str, Array] = {"features": feature_map.transform(x)}
        if feature_map.signature is not None:
            answer["signature"] = feature_map.signature
        return answer

    def kernel(self, name: str, form: Format, body: bytes, exact: bool) -> Answer:
        """Approximate Gram block of x against y, or of x against itself, and the exact one beside it if wanted."""
        feature_map = self._maps.ready(name)
        posted = form.decode(body, feature_map.spec.input_dim, "x", ["y"])
        x = _gate(feature_map, posted["x"], "/x")
        y = _gate(feature_map, posted["y"], "/y") if "y" in posted else x
        n, m = x.shape[0], y.shape[0]
        self._limits.check_result(n * m * feature_map.gram_dtype.itemsize * (2 if exact else 1))
        d = feature_map.spec.input_dim
        self._limits.check_operations(feature_map.gram_operations(x, y) + (n * m * d if exact else 0))
        if exact:
            self._limits.check_result((n + m) * d * 8)
        answer: dict[str, Array] = {"approximate": feature_map.gram(x, y)}
        if exact:
            dtype = feature_map.spec.numpy_dtype
            answer["exact"] = feature_map.exact_gram(x, y).astype(dtype, copy=False)
        return answer

    def codes(self, name: str, form: Format, body: bytes, encoding: Encoding, on_zero: OnZero) -> Answer:
        """Codes of the posted vectors, in their order."""
        sampling = self._sampling(name)
        posted = form.decode(body, sampling.spec.input_dim, "vectors")["vectors"]
        x = _gate(sampling, posted, "/vectors")
        width = 16 if encoding is Encoding.pairs else 4
        self._limits.check_result(x.shape[0] * sampling.n_output * width)
        self._limits.check_operations(sampling.hash_operations(x))
        hashed = _hashed(sampling, x, encoding)
        if on_zero is OnZero.refuse:
            refuse_unsampled(hashed, "/vectors")
        return {"codes": hashed}

    def similarity(self, name: str, body: bytes, encoding: Encoding | None) -> Answer:
        """Estimated kernel of row i of x with row i of y.

        Args:
            name: of a map with kernel gmm.
            body: JSON with x and y, vectors or codes.
            encoding: how x and y encode codes. Without it, rows of pairs and rows of s whole numbers, where s is not
                the length of a vector, are read as codes and all else as vectors, whose exact kernel is then given.
        """
        sampling = self._sampling(name)
        posted = members(body, ["x", "y"])
        encoding = encoding or _recognised(posted["x"], sampling)
        if encoding is None:
            gated = (rows(posted[k], sampling.spec.input_dim, f"/{k}") for k in ("x", "y"))
            x, y = (_gate(sampling, matrix, f"/{k}") for k, matrix in zip(("x", "y"), gated, strict=True))
            _check_paired(x, y)
            self._limits.check_result((x.shape[0] + y.shape[0]) * sampling.spec.input_dim * 8)
            self._limits.check_operations(sampling.hash_operations(x) + sampling.hash_operations(y))
            estimate = np.empty(x.shape[0])
            for block in row_blocks(x.shape[0], _CODES_PER_BLOCK // sampling.n_output):
                x_codes, y_codes = sampling.pairs(x[block]), sampling.pairs(y[block])
                refuse_unsampled(x_codes, "/x", block.start)
                refuse_unsampled(y_codes, "/y", block.start)
                estimate[block] = _collision_rate(x_codes, y_codes)
            return _with_error(estimate, sampling.n_output) | {"exact": sampling.exact_pairs(x, y)}
        width = 2 if encoding is Encoding.pairs else 1
        x_codes, y_codes = (codes(posted[k], sampling.n_output, width, f"/{k}") for k in ("x", "y"))
        _check_paired(x_codes, y_codes)
        for pointer, posted_codes in (("/x", x_codes), ("/y", y_codes)):
            refuse_unsampled(posted_codes, pointer)
            _check_indices(posted_codes[:, :, 0], sampling.spec.input_dim, pointer)
        return _with_error(_collision_rate(x_codes, y_codes), sampling.n_output)

    def _sampling(self, name: str) -> ConsistentSamplingMap:
        sampling = self._maps.ready(name)
        if not isinstance(sampling, ConsistentSamplingMap):
            kind = sampling.spec.kernel.kind
            raise InvalidInput(
                f"map {name!r} has kernel {kind}; codes come from maps with kernel gmm: POST to /transform"
            )
        return sampling


def _gate(feature_map: FourierMap | ConsistentSamplingMap, posted: Any, pointer: str) -> Rows:
    return vectors(posted, feature_map.spec.input_dim, feature_map.spec.numpy_dtype, pointer)


def _hashed(sampling: ConsistentSamplingMap, posted: Rows, encoding: Encoding) -> Codes:
    return sampling.pairs(posted) if encoding is Encoding.pairs else sampling.zero_bit(posted)


def _check_paired(x: Any, y: Any) -> None:
    if x.shape[0] != y.shape[0]:
        raise InvalidInput(f"x has {x.shape[0]} rows and y {y.shape[0]}; row i of x goes with row i of y", "/y")


def _check_indices(indices: NDArray[np.int64], input_dim: int, pointer: str) -> None:
    wrong = np.flatnonzero(((indices < 0) | (indices >= 2 * input_dim)).any(axis=1))
    if wrong.size:
        raise InvalidInput(f"row {wrong[0]} has codes outside 0 to {2 * input_dim - 1}", f"{pointer}/{wrong[0]}")


def _recognised(posted: Any, sampling: ConsistentSamplingMap) -> Encoding | None:
    row = posted[0] if isinstance(posted, list) and posted else None
    if not isinstance(row, list) or not row:
        return None
    if isinstance(row[0], list):
        return Encoding.pairs
    whole = set(map(type, row)) == {int}
    return Encoding.zero_bit if whole and len(row) == sampling.n_output != sampling.spec.input_dim else None


def _collision_rate(x: Codes, y: Codes) -> NDArray[np.float64]:
    rate: NDArray[np.float64] = (x == y).all(axis=2).mean(axis=1)
    return rate


def _with_error(estimate: NDArray[np.float64], s: int) -> dict[str, Array]:
    """Estimates g and their standard errors √(g(1 − g)/s), each being the mean of s independent collisions."""
    return {"estimate": estimate, "standard_error": np.sqrt(estimate * (1 - estimate) / s)}
