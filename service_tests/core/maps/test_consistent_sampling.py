"""GCWS codes against algorithm 1 written out slowly, and how rows of every shape reach it."""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import vectors
from app.core.errors import InvalidInput
from app.core.hashing import row_samples
from app.core.hashing.parameter_stream import sampling_parameters
from app.core.maps import ConsistentSamplingMap, opened, weighted_minhash
from service_tests.cases import each
from service_tests.core.specs import gmm_spec, hashing, pairs, spec, zero_bit

CENTER = [0.5, -1.0, 0.0, 2.0, 0.25]


def rows(n: int = 12, seed: int = 1) -> NDArray[np.float64]:
    """Signed rows of five entries, some of them zero."""
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(n, 5)) * np.exp(rng.normal(size=(n, 5)))
    made[rng.random((n, 5)) < 0.3] = 0
    made[:, 4] = rng.normal(size=n)
    return made


def tables(seed: int, coordinates: int, s: int) -> dict[str, NDArray[np.float64]]:
    """The draws of the first coordinates."""
    drawn = np.empty((4, coordinates, s))
    sampling_parameters(np.uint64(seed), np.arange(coordinates), 0, drawn)
    return {"r": drawn[0], "log_c": drawn[2], "beta": drawn[3]}


def algorithm_1(u: list[float], draws: dict[str, NDArray[np.float64]], h: int, p: float) -> tuple[int, int]:
    """(i*, t*) of one row and hash, as the paper writes it: transform, then the smallest a over the coordinates."""
    double = [0.0] * (2 * len(u))
    for j, entry in enumerate(u):
        if entry > 0:
            double[2 * j] = entry
        else:
            double[2 * j + 1] = -entry
    best, sample = math.inf, (-1, -1)
    for i, entry in enumerate(double):
        if entry > 0:
            r, c, beta = float(draws["r"][i, h]), math.exp(draws["log_c"][i, h]), float(draws["beta"][i, h])
            t = math.floor(p * math.log(entry) / r + beta)
            a = math.log(c) - r * (t + 1 - beta)
            if a < best:
                best, sample = a, (i, t)
    return sample


@each("center", [None, CENTER])
@each("p", [0.5, 1.0, 7.0])
def test_the_codes_are_those_of_algorithm_1_on_the_same_tables(p: float, center: Any) -> None:
    sampling = hashing(input_dim=5, s=200, kernel={"kind": "gmm", "p": p, "center": center})
    centered = rows() - (CENTER if center else np.zeros(5))
    draws = tables(7, 10, 200)
    expected = [[algorithm_1(list(row), draws, h, p) for h in range(200)] for row in centered]
    codes = pairs(sampling, rows())
    assert codes.dtype == np.int64
    assert (codes == np.array(expected)).all()
    assert len(np.unique(codes[..., 0])) > 5


def test_zero_bit_codes_are_the_first_of_the_pairs_in_32_bits() -> None:
    sampling = hashing(input_dim=5)
    codes = zero_bit(sampling, rows())
    assert codes.dtype == np.int32
    assert codes.shape == (12, 64)
    assert (codes == pairs(sampling, rows())[..., 0]).all()


@pytest.mark.parametrize("center", [None, CENTER], ids=["plain", "centered"])
def test_coordinate_j_has_index_2j_above_the_center_and_2j_plus_1_below(center: Any) -> None:
    sampling = hashing(input_dim=5, kernel={"kind": "gmm", "center": center})
    middle = np.array(center or [0.0] * 5)
    for j in range(5):
        for sign, index in ((1.0, 2 * j), (-1.0, 2 * j + 1)):
            row = middle.copy()
            row[j] += 0.1 * sign
            assert (zero_bit(sampling, row[None]) == index).all()


def test_both_signs_are_sampled_so_that_opposite_rows_never_collide() -> None:
    sampling = hashing(input_dim=5, s=1000)
    codes, opposite = zero_bit(sampling, rows()), zero_bit(sampling, -rows())
    assert (codes != opposite).all()
    assert 0.2 < (codes % 2).mean() < 0.8


def test_the_hashes_of_a_map_do_not_share_one_index() -> None:
    # One index for all hashes is a known defect: on a row of equal entries each of ten must come up.
    codes = zero_bit(hashing(input_dim=5, s=2000, kernel={"kind": "gmm", "center": [0.0] * 5}), np.ones((1, 5)))
    counts = np.bincount(codes[0], minlength=10)
    # Expected 400 each, one standard error √(2000·0.2·0.8) = 18.
    assert (counts[1::2] == 0).all()
    assert np.abs(counts[::2] - 400).max() < 4 * math.sqrt(2000 * 0.2 * 0.8)


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


def test_gram_blocks_of_two_threads_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_minhash, "STEPS_PER_THREAD", 1)
    monkeypatch.setattr(row_samples, "STEPS_PER_THREAD", 1)
    one, two = (hashing(threads, input_dim=5, s=100) for threads in (1, 2))
    for x, y in ((rows(7), rows(4, seed=2)), (sparse.csr_array(rows(7)), sparse.csr_array(rows(4, seed=2)))):
        assert (one.gram(x, y) == two.gram(x, y)).all()
        assert (one.exact_gram(x, y) == two.exact_gram(x, y)).all()


def test_the_exact_block_names_the_row_of_zeros_by_its_number_in_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_minhash, "STEPS_PER_THREAD", 1)
    monkeypatch.setattr(row_samples, "STEPS_PER_THREAD", 1)
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


def test_the_gram_block_refuses_a_row_of_zeros_where_it_stood() -> None:
    sampling = hashing(input_dim=5)
    zero = np.insert(rows(3), 1, 0, axis=0)
    for x, y, pointer in ((zero, rows(2), "/x/1"), (rows(2), zero, "/y/1")):
        with pytest.raises(InvalidInput, match="row 1") as caught:
            sampling.gram(x, y)
        assert caught.value.pointer == pointer


def test_a_float32_map_rounds_the_rows_and_then_computes_as_a_float64_map_does() -> None:
    single, double = hashing(input_dim=5, dtype="float32", s=500), hashing(input_dim=5, dtype="float64", s=500)
    rounded = rows().astype(np.float32)
    from_float32, from_float64 = (vectors(posted, 5, np.dtype(np.float32)) for posted in (rounded, rows()))
    codes = pairs(single, from_float32)
    assert (pairs(single, from_float64) == codes).all()
    assert (pairs(double, vectors(rounded, 5, np.dtype(np.float64))) == codes).all()


@pytest.mark.parametrize("extreme", [5e-324, 1e-300, 1e300, 1.7e308])
def test_rows_at_the_ends_of_float64_have_codes_also_under_a_large_power(extreme: float) -> None:
    sampling = hashing(input_dim=5, kernel={"kind": "gmm", "p": 1e6}, s=500)
    codes = pairs(sampling, np.array([[0, extreme, 0, 0, 0], [0, 0, 0, -extreme, 0]]))
    assert (codes[0, :, 0] == 2).all()
    assert (codes[1, :, 0] == 7).all()
    assert (np.sign(codes[..., 1]) == np.sign(math.log(extreme))).all()


def test_one_seed_names_one_map_in_every_thread_and_another_seed_another() -> None:
    with ThreadPoolExecutor(4) as pool:
        several = list(pool.map(lambda _: pairs(hashing(input_dim=5), rows()), range(8)))
    assert all((codes == several[0]).all() for codes in several[1:])
    assert (pairs(hashing(input_dim=5, seed=8), rows()) == several[0]).all(axis=2).mean() < 0.5


@pytest.mark.parametrize("seed", [0, (1 << 64) - 1])
def test_nothing_is_built_or_stored(seed: int) -> None:
    made = gmm_spec(input_dim=5, seed=seed)
    built = ConsistentSamplingMap.build(made)
    assert tuple(built) == ({}, 64, 64, (), None)
    assert ConsistentSamplingMap.frozen_bytes(made) == 0
    again = opened(made, built.arrays, 2)
    assert isinstance(again, ConsistentSamplingMap)
    assert (pairs(ConsistentSamplingMap(made), rows()) == pairs(again, rows())).all()


def test_a_longer_map_begins_with_the_codes_of_a_shorter_one() -> None:
    assert (pairs(hashing(input_dim=5, s=100), rows())[:, :64] == pairs(hashing(input_dim=5), rows())).all()


def test_a_kernel_with_frequencies_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(InvalidInput, match="hashes for kernel gmm only; kernel gaussian takes"):
        ConsistentSamplingMap(spec())
