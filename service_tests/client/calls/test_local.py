from typing import Any

import numpy as np
import pytest

from service_tests.client.conftest import Asked

ROWS = np.abs(np.random.default_rng(8).normal(size=(50, 3)))
WIDE = np.random.default_rng(9).normal(size=(50, 8))
SPECS: dict[str, dict[str, Any]] = {
    "dense": {},
    "structured": {"sampler": {"kind": "structured_orthogonal"}, "input_dim": 8},
    "landmarks": {"sampler": {"kind": "uploaded_landmarks", "landmarks": ROWS[:9].tolist()}, "s": 9},
    "input": {"input": {"center": [1.0, 2.0, 3.0], "scale": 2.0}, "form": "phase", "dtype": "float64"},
}


@pytest.mark.parametrize("title", SPECS)
def test_features_and_kernels_here_are_those_of_the_service_bit_for_bit(
    ask: Asked, name: str, gaussian: dict[str, Any], title: str
) -> None:
    ask.put_map(name, {**gaussian, **SPECS[title]})
    here = ask.local(name)
    rows = ROWS if title != "structured" else WIDE
    assert np.array_equal(here.transform(rows), ask.transform(name, rows))
    there = ask.kernel(name, rows, exact=True)
    assert np.array_equal(here.kernel(rows), there.approximate)
    assert np.array_equal(here.kernel(rows, exact=True).astype(there.exact.dtype), there.exact)


def test_codes_here_are_those_of_the_service(ask: Asked, name: str, gmm: dict[str, Any]) -> None:
    ask.put_map(name, gmm)
    here = ask.local(name, threads=1)
    for encoding, bits in (("pairs", None), ("packed", 3), ("fingerprint", 32)):
        assert np.array_equal(here.codes(ROWS, encoding, bits=bits), ask.codes(name, ROWS, encoding, bits=bits))
