"""Features, codes and Gram blocks are of rows rounded to the map's dtype; exact kernels of the rows as they came."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core.arrays import in_dtype
from app.core.hashing.encodings import Encoder, Encoding
from app.core.maps import Gives, make_map
from service_tests.cases import each
from service_tests.core.specs import spec

RNG = np.random.default_rng(17)
ROWS = RNG.random((30, 8)) * 0.9 + 0.1
LANDMARKS = {"kind": "uploaded_landmarks", "landmarks": RNG.random((12, 8)).tolist()}
GAUSSIAN: dict[str, Any] = {"kind": "gaussian", "length_scale": 1.0}
MAPS: dict[str, dict[str, Any]] = {
    "fourier": {"kernel": GAUSSIAN},
    "structured": {"kernel": GAUSSIAN, "sampler": {"kind": "structured_orthogonal"}},
    "normalized": {"kernel": GAUSSIAN, "form": "phase", "normalize": True},
    "directions": {"kernel": {"kind": "correlation_rbf", "gamma": 2.0}},
    "hashes": {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}},
    "centered": {"kernel": {"kind": "gmm", "center": [0.3] * 8}, "sampler": {"kind": "gcws"}},
    **{
        f"landmarks of {kernel['kind']}": {"kernel": kernel, "sampler": LANDMARKS, "s": None}
        for kernel in (
            GAUSSIAN,
            {"kind": "correlation_rbf", "gamma": 2.0},
            {"kind": "gmm", "center": [0.3] * 8},
            {"kind": "polynomial", "degree": 2},
            {"kind": "chi_squared"},
        )
    },
}


@each("form", [np.asarray, csr_array])
@each("members", MAPS.values())
def test_what_a_map_makes_is_of_rounded_rows_and_the_exact_kernel_is_not(members: dict[str, Any], form: Any) -> None:
    of = spec(**{"input_dim": 8, "sampler": {"kind": "sobol"}, "s": 16, "dtype": "float32"} | members)
    its_map, x = make_map(of), form(ROWS)
    single = in_dtype(x, np.dtype(np.float32))
    its_map.check_rows(x, "/vectors")
    assert its_map.operations(x) == its_map.operations(single)
    np.testing.assert_array_equal(its_map.gram(x, x), its_map.gram(single, single))
    if Gives.features in its_map.gives:
        np.testing.assert_array_equal(its_map.transform(x), its_map.transform(single))
    else:
        for encoding in (Encoding.pairs, Encoding.zero_bit):
            np.testing.assert_array_equal(its_map.codes(x, Encoder(encoding)), its_map.codes(single, Encoder(encoding)))
    kernel, y = of.kernel, form(ROWS[::-1])
    exact = kernel.exact(kernel.prepare(x), kernel.prepare(x))
    np.testing.assert_allclose(its_map.exact_gram(x, x), exact, rtol=0, atol=1e-14 * np.abs(exact).max())
    np.testing.assert_allclose(its_map.exact_pairs(x, y), exact[:, ::-1].diagonal(), rtol=1e-13)
    assert np.abs(its_map.exact_gram(single, single) - exact).max() > 1e-10


def test_a_row_near_the_centre_keeps_the_sign_that_it_came_with_in_the_exact_kernel_alone() -> None:
    members = {"kernel": {"kind": "gmm", "center": [1e8] * 3}, "sampler": {"kind": "gcws"}, "s": 400}
    its_map = make_map(spec(input_dim=3, dtype="float32", **members))
    x, y = np.array([[1e8 + 3, 1e8 - 1, 1e8 + 64]]), np.array([[1e8 + 1, 1e8 - 3, 1e8 + 64]])
    assert its_map.exact_gram(x, y).item() == pytest.approx((1 + 1 + 64) / (3 + 3 + 64))
    assert its_map.gram(x, y).item() == 1  # float32 has numbers 8 apart there
