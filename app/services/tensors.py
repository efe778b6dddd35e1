"""Maps as models of the Open Inference Protocol: which tensors they give."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from app.core.answers import RowBlocks, rows_of
from app.core.arrays import Array, Rows
from app.core.hashing.encodings import Encoder, Encoding
from app.core.maps import FeatureMap, Gives, family_of
from app.core.maps.terms import BaseSpec, Form
from app.services import hashing, vectors
from app.services.limits import Limits

REAL, IMAG = "real", "imag"
_CODES = Encoder(Encoding.zero_bit)


class Given(NamedTuple):
    """A tensor that a map gives."""

    name: str
    dtype: np.dtype[Any]


def given(spec: BaseSpec) -> list[Given]:
    """The tensors that a map of a spec gives, each of n_output columns."""
    family = family_of(spec.sampler)
    if Gives.features not in family.gives:
        return [Given("codes", np.dtype(np.int64))]
    if spec.form is Form.complex:
        return [Given(REAL, spec.numpy_dtype), Given(IMAG, spec.numpy_dtype)]
    return [Given("features", spec.numpy_dtype)]


def made(feature_map: FeatureMap, x: Rows, limits: Limits, per_number: int) -> dict[str, Array | RowBlocks]:
    """The tensors that a map gives of rows, by their names; raises what `vectors.transform` raises."""
    if Gives.features not in feature_map.gives:
        codes = rows_of(hashing.codes(feature_map, x, _CODES, limits, per_number))
        return {"codes": _changed(codes, lambda some: some.astype(np.int64), np.dtype(np.int64))}
    features = rows_of(vectors.transform(feature_map, x, limits, per_number))
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
