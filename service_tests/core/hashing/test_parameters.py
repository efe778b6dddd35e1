"""Parameters in tables and parameters drawn on demand: the same codes, whatever the threads and the blocks."""

import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Rows, vectors
from app.core.hashing import parameters as module
from app.core.hashing import row_samples
from app.core.hashing.parameters import DrawnParameters, HeldParameters, parameters
from app.core.hashing.sampling import entries
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.maps import ConsistentSamplingMap, weighted_minhash
from service_tests.cases import each
from service_tests.core.specs import hashing, pairs

D, S = 40, 90
FAR = (1 << 31) - 1


def rows(n: int = 23, seed: int = 4) -> NDArray[np.float64]:
    """Signed rows, half of them zero, and one of zeros only."""
    rng = np.random.default_rng(seed)
    made = rng.normal(size=(n, D)) * np.exp(rng.normal(size=(n, D)))
    made[rng.random((n, D)) < 0.5] = 0
    made[n // 2] = 0
    return made


def made_map(held: bool, threads: int = 1, **members: Any) -> ConsistentSamplingMap:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_TABLE_BYTES", module.MOST_TABLE_BYTES if held else 0)
        sampling = hashing(threads, **{"input_dim": D, "s": S} | members)
    assert (sampling.bytes == 0) != held
    return sampling


def test_tables_of_moderate_size_are_held_and_larger_ones_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TABLE_BYTES", 32 * 10 * 50)
    assert isinstance(parameters(7, 10, 50, 1), HeldParameters)
    assert parameters(7, 10, 50, 1).nbytes == 32 * 10 * 50
    assert isinstance(parameters(7, 10, 51, 1), DrawnParameters)
    assert parameters(7, 1 << 32, 1000, 1).nbytes == 0


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("held", [True, False], ids=["held", "drawn"])
@pytest.mark.parametrize("center", [None, [0.25] * D], ids=["plain", "centered"])
def test_codes_hang_neither_on_threads_nor_on_blocks_nor_on_what_is_held(
    center: Any, held: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    its_kernel = {"kind": "gmm", "p": 1.5, "center": center}
    whole = pairs(made_map(True, kernel=its_kernel), rows())
    assert (whole[11] == -1).all() == (center is None)
    sampling = made_map(held, threads, kernel=its_kernel)
    monkeypatch.setattr(weighted_minhash, "STEPS_PER_THREAD", 1)
    monkeypatch.setattr(row_samples, "STEPS_PER_THREAD", 1)
    kind = HeldParameters if held else DrawnParameters
    for most_entries, samples in ((1 << 18, 1 << 20), (1, 1), (100, 1 << 20), (1 << 18, 5 * S)):
        monkeypatch.setattr(kind, "entries_per_block", most_entries)
        monkeypatch.setattr(kind, "samples_per_block", samples)
        for posted in (rows(), vectors(sparse.csr_array(rows()), D, np.dtype(np.float64))):
            assert (pairs(sampling, posted) == whole).all()


@each("threads", [1, 2, 3])
@each("s", [1, 15, 33, 90])
def test_any_slice_of_the_hashes_has_the_samples_of_the_whole(s: int, threads: int) -> None:
    found = entries(rows(), GeneralizedMinMax(kind="gmm"))
    held, drawn = HeldParameters(7, 2 * D, s, threads), DrawnParameters(7, threads)
    whole = held.samples(found, 23, slice(0, s))
    for first, last in ((0, s), (0, 1), (s // 3, s // 2 + 1), (s - 1, s)):
        for made in (held, drawn):
            assert (made.samples(found, 23, slice(first, last)) == whole[:, first:last]).all()


@pytest.mark.parametrize(("input_dim", "s"), [(3000, 520), (17, 1025)])
def test_passes_over_many_coordinates_and_hashes_give_what_single_coordinates_do(input_dim: int, s: int) -> None:
    posted = np.random.default_rng(5).normal(size=(3, input_dim))
    found = entries(posted, GeneralizedMinMax(kind="gmm"))
    held, drawn = HeldParameters(7, 2 * input_dim, s, 1), DrawnParameters(7, 1)
    for hashes in (slice(0, s), slice(s - 515, s)):
        assert (held.samples(found, 3, hashes) == drawn.samples(found, 3, hashes)).all()


def test_a_draw_is_counted_once_for_each_coordinate_that_a_block_of_rows_can_meet() -> None:
    drawn, held = made_map(False), made_map(True)
    one, many = np.ones((1, D)), np.ones((1000, D))
    # One row meets D coordinates; many of them at most 2D, however many they are.
    assert drawn.operations(one) == held.operations(one) + 160 * D * S
    assert drawn.operations(many) == held.operations(many) + 160 * 2 * D * S


def test_the_level_is_kept_whole_where_it_is_largest() -> None:
    # p·log ũ is 7e8, past the integers of float32.
    posted = np.full((2, D), 1e308)
    posted[1] = 1e-308
    held, drawn = (made_map(how, kernel={"kind": "gmm", "p": 1e6}) for how in (True, False))
    codes = pairs(held, posted)
    assert (codes == pairs(drawn, posted)).all()
    assert np.abs(codes[..., 1]).max() > 5e8
    assert (np.sign(codes[..., 1]) == [[1], [-1]]).all()


def far_rows(n: int, nnz: int, input_dim: int = 1 << 31) -> Rows:
    """Sparse rows with coordinates up to the last."""
    rng = np.random.default_rng(8)
    columns = np.sort(rng.integers(0, input_dim - 1 - nnz, (n, nnz)), axis=1) + np.arange(nnz)
    columns[:, -1] = input_dim - 1
    indptr = np.arange(0, n * nnz + 1, nnz)
    made = sparse.csr_array((rng.normal(size=n * nnz), columns.ravel(), indptr), shape=(n, input_dim))
    return vectors(made, input_dim, np.dtype(np.float64))


def test_coordinates_at_the_far_end_of_two_to_the_31_have_their_samples() -> None:
    sampling = hashing(input_dim=1 << 31, s=500)
    assert sampling.bytes == 0
    posted = sparse.csr_array(
        (np.array([1.0, -2.0, 0.5, -1.0]), np.array([FAR, FAR, 0, FAR]), np.array([0, 1, 2, 4])), shape=(3, 1 << 31)
    )
    codes = pairs(sampling, posted)
    assert (codes[0, :, 0] == 2 * FAR).all()
    assert (codes[1, :, 0] == 2 * FAR + 1).all()
    assert set(codes[2, :, 0].tolist()) == {0, 2 * FAR + 1}
    # Weights 1 to 2; one standard error of the share is √(2/9/500) = 0.021.
    assert abs((codes[2, :, 0] == 0).mean() - 1 / 3) < 4 * 0.0211
    # (1 + 0.5) against 2: half of them agree with row 1.
    assert abs((codes[1] == codes[2]).all(axis=1).mean() - 0.4) < 4 * np.sqrt(0.24 / 500)


def test_a_coordinate_has_the_same_codes_in_a_map_of_any_dimension() -> None:
    posted = far_rows(20, 10, 5000)
    assert isinstance(posted, sparse.csr_array)
    wide = sparse.csr_array((posted.data, posted.indices, posted.indptr), shape=(20, 1 << 31))
    assert (pairs(hashing(input_dim=5000), posted) == pairs(hashing(input_dim=1 << 31), wide)).all()


def test_drawing_needs_memory_for_neither_the_dimension_nor_every_entry_and_hash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n, nnz, s = 2000, 100, 128
    monkeypatch.setattr(DrawnParameters, "samples_per_block", 1 << 14)
    sampling, posted = hashing(input_dim=1 << 31, s=s), far_rows(n, nnz)
    pairs(sampling, posted[:2])
    tracemalloc.start()
    try:
        pairs(sampling, posted)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    output, entries = 16 * n * s, 16 * n * nnz
    # A temporary of every entry and hash would take 205 MB.
    assert peak < 3 * (output + entries)
    assert 8 * n * nnz * s > 9 * 3 * (output + entries)


SCRIPT = """
import hashlib, sys
from service_tests import memory
from service_tests.core.hashing.test_parameters import far_rows, rows
from service_tests.core.specs import hashing
threads = int(sys.argv[1])
digest = hashlib.sha256(hashing(threads, input_dim=40, s=4000).codes(rows()[:11]).tobytes())
few = hashing(threads, input_dim=1 << 31, s=128)
few.codes(far_rows(2, 100))
before = memory.peak()
digest.update(few.codes(far_rows(300, 100)).tobytes())
print(digest.hexdigest(), memory.peak() - before)
"""


@pytest.mark.nightly
def test_two_processes_with_one_and_two_threads_give_identical_bytes_in_little_memory() -> None:
    answers = []
    for threads in ("1", "2"):
        ran = subprocess.run([sys.executable, "-c", SCRIPT, threads], capture_output=True, text=True, check=True)
        digest, grown = ran.stdout.split()
        answers.append(digest)
        assert int(grown) < 64 << 20
    assert answers[0] == answers[1]
