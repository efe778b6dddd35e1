"""Collision errors against a count pair by pair."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.diagnostics import collisions
from app.core.hashing.encodings import BitsOf, Encoder, Encoding, encoder
from service_tests.cases import with_nightly
from service_tests.core.diagnostics.measure import collision_errors
from service_tests.core.specs import hashing

N, D, S = 25, 6, 64


def data(n: int = N) -> Any:
    return np.random.default_rng(2).standard_normal((n, D)) + 0.5


def min_max(x: Any, y: Any) -> float:
    x, y = (np.concatenate([np.maximum(of, 0), np.maximum(-of, 0)]) for of in (x, y))
    return float(np.minimum(x, y).sum() / np.maximum(x, y).sum())


def chance_of(bits: int, bits_of: BitsOf | None, negative: tuple[float, float]) -> float:
    """How often different samples have one code: mixed, of all words; else, if signs are drawn with these shares."""
    if bits_of not in (None, BitsOf.index):
        return 2.0**-bits
    shares = [[share if i % 2 else 1 - share for i in range(2 * D)] for share in negative]
    different = [(a, b, shares[0][a] * shares[1][b]) for a in range(2 * D) for b in range(2 * D) if a != b]
    return sum(w for a, b, w in different if a % 2**bits == b % 2**bits) / sum(w for _, _, w in different)


@pytest.mark.parametrize("bits_of", [None, *BitsOf])
@pytest.mark.parametrize("bits", with_nightly([None, 4], [1, 16]))
def test_figures_are_those_of_every_pair(bits: int | None, bits_of: BitsOf | None) -> None:
    made, x, gamma = hashing(input_dim=D, s=S), data(), 1.5
    found = collision_errors(made, x, bits=bits, bits_of=bits_of and bits_of.value, gamma=gamma)
    codes = {
        "full": made.codes(x, Encoder(Encoding.pairs)),
        "zero_bit": made.codes(x, Encoder(Encoding.zero_bit)),
        "b_bit": made.codes(x, encoder(Encoding.b_bit, bits, bits_of)),
    }
    negative = (codes["zero_bit"] % 2).mean(axis=1)
    chances: dict[str, Any] = {"full": 0.0, "zero_bit": 0.0, "b_bit": []}
    exact, rates, rbf, rbf_estimates = [], {name: [] for name in codes}, [], []  # type: ignore[var-annotated]
    for i in range(N):
        for j in range(i):
            exact.append(min_max(x[i], x[j]))
            chances["b_bit"].append(chance_of(bits or 8, bits_of, (negative[i], negative[j])))
            for name, of in codes.items():
                equal = [np.array_equal(a, b) for a, b in zip(of[i], of[j], strict=True)]
                rates[name].append(np.mean(equal))
            full = rates["full"][-1]
            rbf_estimates.append(np.exp(-2 * gamma * ((1 - full) / (1 + full)) ** 2))
            cosine = x[i] @ x[j] / np.linalg.norm(x[i]) / np.linalg.norm(x[j])
            rbf.append(np.exp(-gamma * (1 - cosine)))
    assert found["pairs"] == N * (N - 1) // 2
    assert found["exact"]["mean"] == pytest.approx(np.mean(exact), rel=1e-12)
    for name, rate in rates.items():
        chance = np.broadcast_to(chances[name], len(exact))
        known = chance < 1
        assert known.mean() > 0.9
        error = (np.array(rate) - chance)[known] / (1 - chance[known]) - np.array(exact)[known]
        of = found[name]  # type: ignore[literal-required]
        assert of["rate"] == pytest.approx(np.mean(rate), rel=1e-12)
        assert of["mean"] == pytest.approx(np.mean(np.array(exact)[known]) + error.mean(), rel=1e-12)
        assert of["bias"] == pytest.approx(error.mean(), abs=1e-13)
        assert of["rms_error"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-12)
        # Pairs share rows and hashes: of 300 coverage errors, that of 25 independent ones, 4 % each, twice and a half.
        assert of["coverage"] == pytest.approx(0.95, abs=0.1 if known.all() else 0.2)
    error = np.array(rbf_estimates) - rbf
    assert found["rbf"] is not None
    assert found["rbf"]["exact"] == pytest.approx(np.mean(rbf), rel=1e-12)
    assert found["rbf"]["mean"] == pytest.approx(np.mean(rbf_estimates), rel=1e-12)
    assert found["rbf"]["bias"] == pytest.approx(error.mean(), abs=1e-13)
    assert found["rbf"]["rms_error"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-12)
    g = np.array(exact)
    assert found["rbf"]["link_bias"] == pytest.approx(
        np.mean(np.exp(-2 * gamma * ((1 - g) / (1 + g)) ** 2) - rbf), abs=1e-13
    )
    assert found["rbf"]["coverage"] == pytest.approx(found["full"]["coverage"], abs=1e-12)


def test_pairs_of_one_sign_have_no_estimate_of_one_bit() -> None:
    made, x = hashing(input_dim=D, s=S), np.abs(data())
    of_one_sign = collision_errors(made, x, bits=1)
    assert of_one_sign["b_bit"] == {"rate": 1.0, "mean": None, "bias": None, "rms_error": None, "coverage": None}
    assert collision_errors(made, x, bits=2)["b_bit"]["mean"] is not None
    # Two rows of many negative entries among positive ones: the means are of the pairs that either is in.
    x[[3, 4]] *= [1, -1, 1, -1, 1, -1]
    some = collision_errors(made, x, bits=1)["b_bit"]
    assert some["rate"] < 1
    assert some["mean"] is not None
    assert np.isfinite(some["mean"])


@pytest.mark.parametrize("center", [None, [0.5] * D])
def test_sparse_rows_are_counted_like_dense_ones(center: list[float] | None) -> None:
    x = data() * (np.random.default_rng(0).random((N, D)) < 0.6)
    x[:, 1] = 1.5
    made = hashing(input_dim=D, s=S, kernel={"kind": "gmm", "center": center})
    dense = collision_errors(made, x, gamma=1.0)
    compressed = collision_errors(made, sparse.csr_array(x), gamma=1.0)
    assert compressed["full"]["rate"] == dense["full"]["rate"]
    assert compressed["exact"]["mean"] == pytest.approx(dense["exact"]["mean"], rel=1e-12)


def test_sparse_rows_that_a_centre_makes_dense_are_compared_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = hashing(input_dim=D, s=S, kernel={"kind": "gmm", "center": [0.5] * D})
    sizes, exact_pairs = list[int](), type(made).exact_pairs

    def compare(feature_map: Any, x: Any, y: Any) -> Any:
        sizes.append(D * (x.shape[0] + y.shape[0]))
        return exact_pairs(feature_map, x, y)

    monkeypatch.setattr(type(made), "exact_pairs", compare)
    monkeypatch.setattr(collisions, "_ENTRIES_PER_BLOCK", 50)
    x = made.spec.gate(sparse.csr_array(np.diag(np.arange(1.0, D + 1))), "/vectors")
    found = collision_errors(made, x)
    assert max(sizes) <= 2 * 50
    assert sum(sizes) == 2 * D * found["pairs"]
