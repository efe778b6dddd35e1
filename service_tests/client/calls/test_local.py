from typing import Any

import numpy as np

from service_tests.client.conftest import Asked

ROWS = np.abs(np.random.default_rng(8).normal(size=(50, 3)))
SPECS: dict[str, dict[str, Any]] = {
    "structured": {"sampler": {"kind": "structured_orthogonal"}},
    "landmarks": {"sampler": {"kind": "uploaded_landmarks", "landmarks": ROWS[:9].tolist()}, "s": 9},
    "input": {"input": {"center": [1.0, 2.0, 3.0], "scale": 2.0}, "form": "phase", "dtype": "float64"},
}


def test_a_map_here_computes_what_the_service_does_bit_for_bit(
    ask: Asked, name: str, gaussian: dict[str, Any], gmm: dict[str, Any]
) -> None:
    ask.put_map(name, {**gaussian, "input": {"center": [1.0, 2.0, 3.0], "scale": 2.0}, "form": "phase"})
    here = ask.local(name)
    assert np.array_equal(here.transform(ROWS), ask.transform(name, ROWS))
    assert np.array_equal(here.kernel(ROWS), ask.kernel(name, ROWS).approximate)
    ask.put_map(f"{name}-hashes", gmm)
    packed = {"encoding": "packed", "bits": 3}
    codes = ask.local(f"{name}-hashes", threads=1).codes(ROWS, **packed)
    assert np.array_equal(codes, ask.codes(f"{name}-hashes", ROWS, **packed))
