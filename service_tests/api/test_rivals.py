"""Normalized random Fourier features beside the min-max kernel's codes: the same three calls."""

from typing import Any

import httpx
import numpy as np
import pytest

from service_tests.checks import array, member, post, post_npy, put
from service_tests.expected_codes import expected

DIM, S, GAMMA = 30, 2048, 2.0
RIVALS: dict[str, dict[str, Any]] = {
    "nrff": {
        "kernel": {"kind": "correlation_rbf", "gamma": GAMMA},
        "sampler": {"kind": "monte_carlo"},
        "form": "phase",
        "normalize": True,
    },
    "gcws": {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}},
}


def rows() -> Any:
    base = np.random.default_rng(5).normal(size=(2, DIM))
    return np.vstack([base[0], base[0] + 0.3 * base[1], base[1]])


def exact_rbf(x: Any) -> Any:
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return np.exp(-GAMMA * (1 - unit @ unit.T))


@pytest.mark.parametrize("rival", RIVALS)
def test_a_rival_is_put_applied_and_judged(http: httpx.Client, name: str, rival: str) -> None:
    spec = {"input_dim": DIM, "s": S, "seed": 7, **RIVALS[rival]}
    x = rows()
    assert put(http, name, spec).status_code == 201
    path = "transform" if rival == "nrff" else "codes?encoding=one_hot&bits=8&bits_of=pair"
    features = array(post_npy(http, f"{name}/{path}", x))
    assert features.shape == (3, S)
    block = post(http, f"{name}/kernel?exact=true", {"x": x.tolist()})
    exact, approximate = member(block, "exact"), member(block, "approximate")
    if rival == "nrff":
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-6)
        np.testing.assert_allclose(features @ features.T, approximate, rtol=0, atol=1e-5)
        np.testing.assert_allclose(exact, exact_rbf(x), rtol=1e-5)
        # Four standard errors of a mean of products of two features, at the most.
        assert np.abs(approximate - exact).max() < 4 / np.sqrt(S)
    else:
        pairs = array(post_npy(http, f"{name}/codes?encoding=pairs", x))
        assert features.tolist() == expected(pairs, "encoding=one_hot&bits=8&bits_of=pair")
        assert np.abs(approximate - exact).max() < 4 * np.sqrt(0.25 / S)


def test_both_estimate_one_kernel_from_the_same_vectors(http: httpx.Client, name: str) -> None:
    x = rows()
    for rival, spec in RIVALS.items():
        assert put(http, f"{name}-{rival}", {"input_dim": DIM, "s": S, "seed": 7, **spec}).status_code == 201
    first, second = x[[0, 0, 1]].tolist(), x[[1, 2, 2]].tolist()
    codes = post(http, f"{name}-gcws/similarity?gamma={GAMMA}", {"x": first, "y": second})
    block = post(http, f"{name}-nrff/kernel?exact=true", {"x": x.tolist()})
    pairs = ([0, 0, 1], [1, 2, 2])
    np.testing.assert_allclose(member(codes, "rbf_exact"), member(block, "exact")[pairs], rtol=1e-5)
    np.testing.assert_allclose(member(codes, "rbf_exact"), exact_rbf(x)[pairs], rtol=1e-5)
    # The min-max kernel is near its law in ρ only for many coordinates; thirty are some.
    assert np.abs(member(codes, "rbf_estimate") - member(codes, "rbf_exact")).max() < 0.15
