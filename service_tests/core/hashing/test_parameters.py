"""Parameters in tables and parameters drawn on demand: the same codes, whatever the threads and the blocks."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import vectors
from app.core.hashing import sampling as module
from app.core.hashing.sampling import DrawnParameters, HeldParameters, entries
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.maps import ConsistentSamplingMap, weighted_minhash
from service_tests.cases import each
from service_tests.core.specs import hashing, pairs

D, S = 40, 90


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
