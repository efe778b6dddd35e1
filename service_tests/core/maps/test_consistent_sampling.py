"""How rows of every shape reach GCWS, and its Gram blocks."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import vectors
from app.core.errors import InvalidInput
from app.core.maps import ConsistentSamplingMap, weighted_minhash
from service_tests.core.specs import hashing, pairs, zero_bit

CENTER = [0.5, -1.0, 0.0, 2.0, 0.25]


def rows(n: int = 12, seed: int = 1) -> NDArray[np.float64]:
    """Signed rows of five entries, some of them zero."""
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(n, 5)) * np.exp(rng.normal(size=(n, 5)))
    made[rng.random((n, 5)) < 0.3] = 0
    made[:, 4] = rng.normal(size=n)
    return made


@pytest.mark.parametrize("as_csr", [False, True], ids=["dense", "csr"])
def test_a_row_of_zeros_has_code_minus_one_and_leaves_its_neighbours_alone(as_csr: bool) -> None:
    sampling = hashing(input_dim=5)
    with_zero = np.insert(rows(4), 2, 0, axis=0)
    posted = vectors(sparse.csr_array(with_zero), 5, np.dtype(np.float64)) if as_csr else with_zero
    samples = pairs(sampling, posted)
    assert (samples[2] == -1).all()
    assert (zero_bit(sampling, posted) == samples[..., 0]).all()
    others = [0, 1, 3, 4]
    assert (samples[others] == pairs(sampling, rows(4))).all()
    assert (samples[others][..., 0] >= 0).all()


def test_a_batch_of_zeros_only_and_an_empty_one_have_codes_too() -> None:
    sampling = hashing(input_dim=5)
    assert (pairs(sampling, np.zeros((3, 5))) == -1).all()
    assert pairs(sampling, np.empty((0, 5))).shape == (0, 64, 2)
    assert zero_bit(sampling, np.empty((0, 5))).shape == (0, 64)
    assert sampling.gram(np.empty((0, 5)), rows(3)).shape == (0, 3)


@pytest.mark.parametrize("center", [None, CENTER], ids=["plain", "centered"])
def test_an_explicit_zero_in_a_sparse_row_changes_nothing(center: Any) -> None:
    sampling = hashing(input_dim=5, kernel={"kind": "gmm", "center": center})
    explicit = sparse.csr_array(
        (np.array([0.0, 1.5, -2.0, 0.0, 0.0, 3.0]), np.array([0, 1, 4, 2, 3, 0]), np.array([0, 3, 5, 6])), shape=(3, 5)
    )
    assert explicit.nnz == 6
    dense = np.array([[0, 1.5, 0, 0, -2.0], [0, 0, 0, 0, 0], [3.0, 0, 0, 0, 0]])
    assert (pairs(sampling, vectors(explicit, 5, np.dtype(np.float64))) == pairs(sampling, dense)).all()
    assert (pairs(sampling, sparse.csr_array(dense)) == pairs(sampling, dense)).all()


@pytest.mark.parametrize("per_block", [1, 150, 1 << 18])
def test_the_gram_block_is_the_share_of_equal_pairs_whatever_the_blocks_of_hashes(
    per_block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = hashing(input_dim=5, s=100)
    x, y = rows(6, seed=1), np.concatenate([rows(3, seed=2), rows(6, seed=1)[:2] * 1.1])
    x_codes, y_codes = pairs(sampling, x), pairs(sampling, y)
    expected = [[(u == v).all(axis=1).mean() for v in y_codes] for u in x_codes]
    by_index = [[(u[:, 0] == v[:, 0]).mean() for v in y_codes] for u in x_codes]
    monkeypatch.setattr(ConsistentSamplingMap, "samples_at_once", per_block)
    np.testing.assert_allclose(sampling.gram(x, y), expected, rtol=1e-15)
    assert not np.allclose(expected, by_index, atol=0.01)


def test_the_exact_block_names_the_row_of_zeros_by_its_number_in_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_minhash, "STEPS_PER_THREAD", 1)
    zero = np.insert(rows(5), 4, 0, axis=0)
    for threads in (1, 2):
        for x, y, pointer in ((zero, rows(2), "/x/4"), (rows(2), zero, "/y/4")):
            with pytest.raises(InvalidInput, match="row 4") as caught:
                hashing(threads, input_dim=5).exact_gram(x, y)
            assert caught.value.pointer == pointer


def test_codes_that_do_not_mark_refuse_rows_of_zeros_by_their_numbers() -> None:
    sampling = hashing(input_dim=5, kernel={"kind": "gmm", "center": CENTER})
    posted = np.insert(rows(4), [1, 3], CENTER, axis=0)
    with pytest.raises(InvalidInput, match="row 1, 4 is all zero") as caught:
        sampling.codes(posted, pointer="/rows")
    assert caught.value.pointer == "/rows/1"
    assert (sampling.codes(rows(4)) == pairs(sampling, rows(4))).all()


@pytest.mark.parametrize("extreme", [5e-324, 1e-300, 1e300, 1.7e308])
def test_rows_at_the_ends_of_float64_have_codes_also_under_a_large_power(extreme: float) -> None:
    sampling = hashing(input_dim=5, kernel={"kind": "gmm", "p": 1e6}, s=500)
    codes = pairs(sampling, np.array([[0, extreme, 0, 0, 0], [0, 0, 0, -extreme, 0]]))
    assert (codes[0, :, 0] == 2).all()
    assert (codes[1, :, 0] == 7).all()
    assert (np.sign(codes[..., 1]) == np.sign(math.log(extreme))).all()
