"""Codes of rows as an adviser and indexes have them: the law that ties them to the kernel."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.indexes.hashed_rows import hash_rows, law_of, packed_codes
from app.core.maps import FeatureMap
from app.core.progress import no_pause
from service_tests.core.specs import fourier, hashing

LETTERS = np.load(Path(__file__).parents[3] / "examples" / "letters.npy").astype(np.float64)
STANDARDISED = (LETTERS - LETTERS.mean(axis=0)) / LETTERS.std(axis=0)
X, Y = STANDARDISED[:300], STANDARDISED[300:600]


def signed(s: int = 4096) -> FeatureMap:
    return fourier(input_dim=16, s=s, kernel={"kind": "gaussian", "length_scale": 3.0})


@pytest.mark.parametrize("made", [hashing(input_dim=16, s=2048), signed()], ids=["gmm", "signed"])
def test_hashes_agree_at_the_rates_of_the_law(made: FeatureMap) -> None:
    law, exact = law_of(made), made.exact_pairs(X, Y)
    x, y = (hash_rows(made, rows, no_pause) for rows in (X, Y))
    s = made.n_frequencies
    assert x.shape == (300, s)
    assert x.max() < 1 << law.encoder.bits
    rates = law.rates(exact)
    off = ((x == y).mean(axis=1) - rates) / np.sqrt(rates * (1 - rates) / s)
    assert np.abs(off).max() < 5
    assert abs(off.mean()) < 0.6  # pairs share hashes
    estimate, error = law.kernel((x == y).sum(axis=1))
    assert np.abs((estimate - exact) / error).max() < 5
    np.testing.assert_array_equal(packed_codes(x, law.encoder.bits), made.codes(X, law.encoder))


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"kernel": {"kind": "cauchy", "length_scale": 1.0}}, "no estimate"),
        ({"sampler": {"kind": "sparse_grid", "level": 2}, "s": None}, "weights of their own"),
    ],
)
def test_a_map_whose_codes_tell_no_kernel_is_refused(members: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as caught:
        law_of(fourier(**members))
    assert caught.value.pointer == "/map"
