"""The first transform and the first hashing of a process, which compile what is compiled at first use."""

import numpy as np

from app.core.maps import ConsistentSamplingMap, FourierMap
from app.core.spec import MapSpec

_FOURIER = '{"input_dim": 1, "s": 1, "kernel": {"kind": "gaussian", "length_scale": 1}, "sampler": {"kind": "sobol"}}'
_HASHING = '{"input_dim": 1, "s": 1, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}'


def warm_up() -> None:
    """Transform one row, and hash one in each way that has a compiled loop of its own."""
    rows = np.ones((1, 1))
    fourier = MapSpec.model_validate_json(_FOURIER)
    FourierMap(fourier, FourierMap.build(fourier).arrays).transform(rows)
    hashing = MapSpec.model_validate_json(_HASHING)
    hashing_map = ConsistentSamplingMap(hashing, ConsistentSamplingMap.build(hashing).arrays)
    hashing_map.zero_bit(rows)
    hashing_map.gram(rows, rows)
    hashing_map.exact_gram(rows, rows)
    hashing_map.exact_pairs(rows, rows)


if __name__ == "__main__":
    warm_up()
