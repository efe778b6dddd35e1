"""Maps as they are taken away, without a service."""

from typing import Any

import numpy as np

from app.core.maps import FeatureMap, build, derived_arrays, open_map
from app.core.maps.terms import TakenMap
from app.core.spec import MapSpec
from app.formats.exports import EXPORTS
from service_tests.core.combinations import with_rows

DIGEST = "sha256:" + "0" * 64


def taken(of: MapSpec) -> tuple[TakenMap, FeatureMap]:
    """A map as it is taken away, and as the service has it."""
    arrays = build(of, with_rows(of.input_dim, its_kernel=of.kernel.kind)).arrays
    feature_map = open_map(of, arrays, 1)
    every = {**arrays, **derived_arrays(of, arrays)}
    return TakenMap(of, of.canonical(), DIGEST, feature_map.parameter_stream, every), feature_map


def written(of: TakenMap, file_format: str) -> bytes:
    """The file; it has the length that it was announced with, if it was."""
    encoded = EXPORTS[file_format].write(of)
    content = b"".join(encoded.pieces)
    assert encoded.nbytes in (None, len(content))
    return content


def features(feature_map: FeatureMap, rows: Any) -> Any:
    """What the service answers for rows as they are posted."""
    return feature_map.transform(feature_map.spec.gate(rows, "/vectors"))


def largest_phase(feature_map: FeatureMap, rows: Any) -> float:
    """The largest phase of the rows, 1 at the least, in float64."""
    of = feature_map.spec
    prepared = feature_map.prepare_rows(of.gate(rows, "/vectors"), "/vectors")
    frequencies = feature_map.arrays["frequencies"].astype(np.float64)
    return max(1.0, float(np.abs(np.asarray(prepared, np.float64) @ frequencies.T).max()))
