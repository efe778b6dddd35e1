"""Features and Gram blocks of vectors."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np

from app.core.answers import IDS, SIGNATURE, Answer, RowBlocks
from app.core.arrays import Array, Matrix, Rows
from app.core.errors import InvalidInput
from app.core.ids import Ids
from app.core.maps import FeatureMap
from app.services import results
from app.services.limits import Limits


def transform(feature_map: FeatureMap, x: Rows, limits: Limits, per_number: int) -> Answer:
    """Features of the vectors in the same order, and the map's signature if it has one.

    `per_number` is how many multiplications take as long as writing a number of the answer.

    Raises:
        InvalidInput: vectors have no features.
        TooLarge: a row of the result, or the work, passes a limit.
    """
    features = results.made(
        x,
        ((feature_map.n_output,), feature_map.gram_dtype),
        feature_map.operations(x),
        per_number,
        limits,
        lambda: feature_map.check_rows(x, "/vectors"),
        feature_map.transform,
        feature_map.largest_feature,
    )
    return answer(feature_map, features)


def answer(feature_map: FeatureMap, features: Array | RowBlocks) -> Answer:
    """An answer of features, with the map's signature if it has one."""
    found: dict[str, Array | RowBlocks] = {"features": features}
    if feature_map.signature is not None:
        found[SIGNATURE] = feature_map.signature
    return found


def identified(answer: Answer, ids: Ids | None) -> Answer:
    """An answer with the ids of its rows beside them, if they have some."""
    return answer if ids is None else {**answer, IDS: ids}


def warnings_of(feature_map: FeatureMap, rows: Mapping[str, Rows]) -> tuple[str, ...]:
    """Doubts about features of these rows, a sentence each; the keys are their names in the request, such as `x`."""
    every = (feature_map.warnings(given, member) for member, given in rows.items())
    return tuple(chain.from_iterable(every))


def kernel(feature_map: FeatureMap, x: Rows, y: Rows, exact: bool, limits: Limits) -> Answer:
    """The approximate Gram block of x against y, and the exact one if wanted.

    Raises:
        InvalidInput: vectors have no kernel.
        TooLarge: the result, or the work, passes a limit.
    """
    n, m = x.shape[0], y.shape[0]
    limits.check_result(n * m * feature_map.gram_dtype.itemsize * (2 if exact else 1))
    exactly = feature_map.kernel.exact_operations(x, y) if exact else 0
    limits.check_operations(feature_map.gram_operations(x, y) + exactly)
    if exact:
        limits.check_result(feature_map.kernel.exact_bytes(x, y))
    found: dict[str, Array] = {"approximate": feature_map.gram(x, y)}
    if exact:
        dtype = np.finfo(feature_map.gram_dtype).dtype  # a complex Gram block has a real exact one
        found["exact"] = _in_range(feature_map.exact_gram(x, y), dtype)
    return found


def _in_range(exact: Matrix, dtype: np.dtype[Any]) -> Array:
    """Kernels in the dtype of the approximate ones; InvalidInput for one that is too large for it."""
    with np.errstate(over="ignore"):  # refused by name
        found = exact.astype(dtype, copy=False)
    if not np.isfinite(found).all():
        raise InvalidInput(
            f"an exact kernel of these rows is {float(np.abs(exact).max()):.3g}, outside the range of {dtype}, the "
            "dtype of this map; dtype float64 has more room"
        )
    return found
