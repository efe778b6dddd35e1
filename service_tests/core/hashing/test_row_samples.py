"""Samples of rows: in blocks, by threads, and the refusal of rows that have none."""

import numpy as np
import pytest
from scipy import sparse

from app.core.errors import InvalidInput
from app.core.hashing import row_samples
from app.core.hashing.encodings import Samples
from app.core.hashing.parameters import DrawnParameters, HeldParameters, parameters
from app.core.hashing.row_samples import RowSampler, refuse_unsampled
from app.core.kernels.gmm import GeneralizedMinMax

D, S = 6, 40
ROWS = np.random.default_rng(1).normal(size=(23, D))
ROWS[11] = 0


def sampler(threads: int = 1) -> RowSampler:
    source = parameters(7, 2 * D, S, threads)
    return RowSampler(GeneralizedMinMax(kind="gmm"), source, D, S, np.dtype(np.float64))


@pytest.mark.parametrize("threads", [1, 3])
def test_every_row_is_sampled_once_in_blocks_of_any_size(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sampler().samples(ROWS, slice(0, S))
    assert ((whole == -1).all(axis=(1, 2)) == (np.arange(23) == 11)).all()
    monkeypatch.setattr(row_samples, "STEPS_PER_THREAD", 1)
    for entries, samples in ((1 << 20, 1 << 20), (1, 1), (3 * D, 1 << 20), (1 << 20, 5 * S)):
        monkeypatch.setattr(HeldParameters, "entries_per_block", entries)
        monkeypatch.setattr(HeldParameters, "samples_per_block", samples)
        for rows in (ROWS, sparse.csr_array(ROWS)):
            found, counts = np.zeros((23, 10, 2), np.int64), np.zeros(23, np.int64)
            pauses: list[int] = []

            def use(block: slice, samples: Samples, found: Samples = found, counts: Samples = counts) -> None:
                found[block] = samples
                counts[block] += 1

            sampler(threads).use_blocks(rows, slice(20, 30), use, lambda pauses=pauses: pauses.append(1))  # type: ignore[misc]
            assert (found == whole[:, 20:30]).all()
            assert (counts == 1).all()
            assert len(pauses) >= (23 if entries == 1 else 1)


def test_sampling_sparse_rows_takes_as_long_as_they_have_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    few = ROWS * (np.arange(D) < 2)
    dense, stored = (sampler().operations(rows) for rows in (few, sparse.csr_array(few)))
    assert dense == 16 * 23 * D * S
    assert stored == 16 * 22 * 2 * S
    monkeypatch.setattr("app.core.hashing.parameters.MOST_TABLE_BYTES", 0)
    drawn = sampler()
    assert drawn.nbytes == 0
    # Each of the 2D coordinates is drawn once for a block of rows.
    assert drawn.operations(few) == dense + DrawnParameters.operations_per_draw * 2 * D * S


@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 2), (4, 3), (4, 3, 2)])
def test_codes_of_sampled_rows_or_of_none_are_not_refused(shape: tuple[int, ...]) -> None:
    codes = np.zeros(shape, np.int64)
    codes[..., -1] = -5  # a level, or the index of another hash: neither is looked at
    refuse_unsampled(codes, "/vectors")


def test_the_refusal_of_unsampled_rows_names_ten_of_them_at_most() -> None:
    codes = np.zeros((20, 3), np.int32)
    codes[4:16] = -1
    with pytest.raises(InvalidInput) as caught:
        refuse_unsampled(codes, "/vectors")
    assert caught.value.pointer == "/vectors/4"
    assert "row 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, … is all zero" in caught.value.detail
