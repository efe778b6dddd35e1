"""Maps as models of the Open Inference Protocol: which tensors they give."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from app.core.answers import RowBlocks, rows_of
from app.core.arrays import Array, Rows
from app.core.hashing.encodings import Encoder, Encoding
from app.core.hashing.signed_codes import SIGNED
from app.core.maps import FeatureMap, Gives, family_of
from app.core.maps.terms import BaseSpec, Form
from app.services import hashing, vectors
from app.services.limits import Limits

REAL, IMAG = "real", "imag"
CODES = "codes"
_HASHES = Encoder(Encoding.zero_bit)


class Given(NamedTuple):
    """A tensor that a map gives."""

    name: str
    dtype: np.dtype[Any]
    columns: int
    by_name_only: bool = False
    """Whether it is left out where nobody asks for it by its name."""


def given(spec: BaseSpec, n_frequencies: int, n_output: int) -> list[Given]:
    """The tensors that a map of a spec gives, which has so many frequencies and columns."""
    results = family_of(spec.sampler).given(spec)
    if Gives.features not in results:
        return [Given(CODES, np.dtype(np.int64), n_output)]
    names = [REAL, IMAG] if spec.form is Form.complex else ["features"]
    found = [Given(name, spec.numpy_dtype, n_output) for name in names]
    if Gives.codes in results:
        (columns,), dtype = SIGNED.row(n_frequencies, spec.input_dim)
        found.append(Given(CODES, dtype, columns, by_name_only=True))
    return found


def made(
    feature_map: FeatureMap, x: Rows, wanted: Collection[str], limits: Limits, per_number: int
) -> dict[str, Array | RowBlocks]:
    """The tensors of rows that are wanted of those that a map gives, by their names.

    Raises what `vectors.transform` raises.
    """
    if Gives.features not in feature_map.gives:
        codes = rows_of(hashing.codes(feature_map, x, _HASHES, limits, per_number))
        return {CODES: _changed(codes, lambda some: some.astype(np.int64), np.dtype(np.int64))}
    found = {}
    if CODES in wanted:
        found[CODES] = rows_of(hashing.codes(feature_map, x, SIGNED, limits, per_number))
    if {*wanted} - {CODES}:
        found |= _of_features(feature_map, rows_of(vectors.transform(feature_map, x, limits, per_number)))
    return found


def _of_features(feature_map: FeatureMap, features: Array | RowBlocks) -> dict[str, Array | RowBlocks]:
    if features.dtype.kind != "c":
        return {"features": features}
    part = feature_map.spec.numpy_dtype
    return {
        REAL: _changed(features, lambda some: some.real, part),
        IMAG: _changed(features, lambda some: some.imag, part),
    }


def _changed(rows: Array | RowBlocks, change: Callable[[Array], Array], dtype: np.dtype[Any]) -> Array | RowBlocks:
    if isinstance(rows, RowBlocks):
        return rows.changed(lambda _, some: change(some), dtype=dtype)
    return change(rows)
