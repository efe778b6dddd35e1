"""How often codes of weighted minhash agree, over 200,000 hashes, against the exact min-max kernel."""

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.hashing import parameters
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.maps.weighted_minhash import WeightedMinHashMap
from service_tests.cases import each, with_nightly
from service_tests.core.specs import darts, gmm_spec, hashing, pairs

S, D = 200_000, 5
CENTER = [0.5, -1.0, 0.0, 2.0, 0.25]

PAIRS: dict[str, tuple[list[float], list[float]]] = {
    "signed": ([1.0, -2.0, 0.5, -0.3, 3.0], [0.7, -2.5, -0.5, -0.1, 1.0]),
    "mostly opposite": ([1.0, -2.0, 0.5, -0.3, 3.0], [-0.7, 2.5, -0.5, -0.1, -1.0]),
    "sparse": ([0, 0, 1.5, 0, -2.0], [0.4, 0, 1.0, 0, -3.0]),
    "positive": ([0.2, 1.0, 0.7, 2.0, 0.1], [0.3, 0.8, 1.5, 0.4, 0.9]),
    "one shared coordinate": ([0, 0, 1.5, -1.0, 0], [2.0, 0, 1.0, 0, -0.5]),
    "scaled": ([1.0, -2.0, 0.5, -0.3, 3.0], [1.5, -3.0, 0.75, -0.45, 4.5]),
    "tiny": ([1e-9, -2e-9, 0, 0, 1e-9], [2e-9, -2e-9, 1e-9, 0, 0]),
}


def min_max(u: Any, v: Any, p: float = 1.0, center: Any = None) -> float:
    """Of the explicitly transformed vectors."""
    a, b = (np.asarray(row, np.float64) - (center or [0.0] * D) for row in (u, v))
    a, b = (np.concatenate([np.maximum(row, 0), np.maximum(-row, 0)]) for row in (a, b))
    return float((np.minimum(a, b) ** p).sum() / (np.maximum(a, b) ** p).sum())


def rate(sampling: WeightedMinHashMap, u: Any, v: Any) -> float:
    """Allocation of hashes whose pairs agree."""
    codes: NDArray[np.int64] = pairs(sampling, np.array([u, v], np.float64))
    return float((codes[0] == codes[1]).all(axis=1).mean())


def standard_error(kernel: float) -> float:
    """Equation (12): the variance of a mean of S independent indicators."""
    return float(np.sqrt(kernel * (1 - kernel) / S))


@pytest.fixture(scope="module", params=with_nightly(["held", "drawn"], ["darts"]))
def sampling(request: pytest.FixtureRequest) -> Iterator[WeightedMinHashMap]:
    """A map of 200,000 hashes: by GCWS with parameters in tables or drawn on demand, or by darts."""
    if request.param == "darts":
        yield darts(input_dim=D, s=S)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parameters, "MOST_TABLE_BYTES", 0 if request.param == "drawn" else 1 << 28)
        made = hashing(input_dim=D, s=S)
        assert (made.bytes == 0) == (request.param == "drawn")
        yield made


def with_kernel(sampling: WeightedMinHashMap, **kernel: Any) -> WeightedMinHashMap:
    """The same draws under another min-max kernel."""
    other, other._sampler = copy(sampling), copy(sampling._sampler)
    made = gmm_spec(input_dim=D, kernel={"kind": "gmm"} | kernel).kernel
    assert isinstance(made, GeneralizedMinMax)
    other.kernel = other._sampler.kernel = made
    return other


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_agree_as_often_as_the_kernel_says(name: str, sampling: WeightedMinHashMap) -> None:
    u, v = PAIRS[name]
    exact = min_max(u, v)
    assert 0.005 < exact < 0.9
    # One standard error is at most 0.0011.
    assert abs(rate(sampling, u, v) - exact) < 4 * standard_error(exact)


@each("name", PAIRS)
@each("p", [0.5, 2.0, 10.0])
def test_so_they_do_under_a_power(p: float, name: str, sampling: WeightedMinHashMap) -> None:
    u, v = PAIRS[name]
    exact = min_max(u, v, p)
    assert abs(rate(with_kernel(sampling, p=p), u, v) - exact) < 4 * standard_error(exact)
    # The tiny pair has entries in ratios of 1, 2 and 0 that leave ½ under every power.
    assert name == "tiny" or abs(exact - min_max(u, v)) > 4 * standard_error(exact)


@each("name", PAIRS)
@pytest.mark.parametrize("p", with_nightly([0.5, 2.0], [1.0, 10.0]))
def test_so_they_do_about_a_center(p: float, name: str, sampling: WeightedMinHashMap) -> None:
    u, v = PAIRS[name]
    exact = min_max(u, v, p, center=CENTER)
    assert abs(rate(with_kernel(sampling, center=CENTER, p=p), u, v) - exact) < 4 * standard_error(exact)
    assert exact == 1 or abs(exact - min_max(u, v, p)) > 4 * standard_error(exact)


def test_hashes_are_independent_of_their_neighbours(sampling: WeightedMinHashMap) -> None:
    codes = pairs(sampling, np.array(PAIRS["signed"]))
    equal = (codes[0] == codes[1]).all(axis=1).astype(np.float64)
    # One standard error of a correlation is 1/√200,000.
    assert abs(np.corrcoef(equal[1:], equal[:-1])[0, 1]) < 4 / np.sqrt(S)
