"""Parameters in tables and parameters drawn on demand: the same codes, whatever the threads and the blocks."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Rows, vectors
from app.core.hashing import parameters as module
from app.core.hashing import row_samples
from app.core.hashing.parameters import DrawnParameters, HeldParameters
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
