"""Codes of an index tell of the kernel: unbiased, with their standard error."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from app.core.errors import InvalidInput
from app.core.maps import make_map
from app.core.spec import MapSpec
from app.services.indexes import IndexCodes
from service_tests.cases import each

GMM = '{"input_dim": 5, "s": 128, "seed": %d, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}'
GAUSSIAN = """{"input_dim": 5, "s": 256, "seed": %d, "kernel": {"kind": "gaussian", "length_scale": 0.8},
    "sampler": {"kind": "monte_carlo"}}"""
CAUCHY = """{"input_dim": 5, "s": 8, "kernel": {"kind": "cauchy", "length_scale": 1.5},
    "sampler": {"kind": "monte_carlo"}}"""
LANDMARKS = """{"input_dim": 1, "kernel": {"kind": "chi_squared"},
    "sampler": {"kind": "uploaded_landmarks", "landmarks": [[1]]}}"""


def unpacked(row: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    return np.unpackbits(row) if bits == 1 else row


@pytest.mark.parametrize(("spec", "bits"), [(GMM, 8), (GAUSSIAN, 1)])
def test_estimates_are_unbiased_and_err_as_they_say(spec: str, bits: int) -> None:
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(2, 5))
    y = x + 0.4 * y
    rows = np.stack([x, y])
    values, errors = [], []
    for seed in range(300):
        feature_map = make_map(MapSpec.model_validate_json(spec % seed))
        codes = IndexCodes(feature_map.code_law("map"))
        assert (codes.bits, codes.s) == (bits, feature_map.n_frequencies)
        one, other = (unpacked(row, bits) for row in codes.pack(feature_map, rows))
        value, error = codes.similarities(np.array([(one == other).sum()]))
        values.append(value[0])
        errors.append(error[0])
    exact = float(make_map(MapSpec.model_validate_json(spec % 0)).exact_pairs(rows[:1], rows[1:])[0])
    standard = np.std(values) / np.sqrt(len(values))
    assert 0.2 < exact < 0.8
    assert abs(np.mean(values) - exact) < 4 * standard
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)


@each("similarity", [0.01, 0.3, 0.5, 0.77, 1.0])
@each("spec", [GMM, GAUSSIAN])
def test_the_least_count_is_the_first_whose_estimate_is_so_large(similarity: float, spec: str) -> None:
    codes = IndexCodes(make_map(MapSpec.model_validate_json(spec % 0)).code_law("map"))
    least = codes.least(similarity, is_decided_later=False)
    values, errors = codes.similarities(np.arange(codes.s + 1))
    assert values[least] >= similarity - 1e-9
    assert least == 0 or values[least - 1] < similarity
    looser = codes.least(similarity, is_decided_later=True)
    assert looser <= least
    assert values[looser] <= max(0.0, similarity - 2 * errors[least])


@each("similarity", [0.05, 0.5, 0.9, 0.99])
def test_one_similar_pair_in_a_thousand_is_not_compared_exactly(similarity: float) -> None:
    law = make_map(MapSpec.model_validate_json(GMM % 0)).code_law("map")
    rate = float(law.rates(np.array([similarity]))[0])
    assert binom.cdf(IndexCodes(law).least(similarity, is_decided_later=True) - 1, law.s, rate) < 0.0014


def test_maps_without_codes_that_tell_of_the_kernel_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"the kernel cannot be estimated from codes of map 'm'"):
        IndexCodes(make_map(MapSpec.model_validate_json(CAUCHY)).code_law("map 'm'"))
    with pytest.raises(InvalidInput, match=r"map 'm' .* gives no codes"):
        IndexCodes(make_map(MapSpec.model_validate_json(LANDMARKS)).code_law("map 'm'"))
