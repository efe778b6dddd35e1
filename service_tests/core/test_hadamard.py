"""Rotations by Walsh–Hadamard matrices against explicit products with SciPy's."""

from typing import Any

import numpy as np
import pytest
from scipy.linalg import hadamard

from app.core.hadamard import NOTHING_KEPT, ROUNDS, frequencies_of, gain, padded_size, rotate, tiles_of

every_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])
every_size = pytest.mark.parametrize("d", [8, 11, 32, 60, 300])


def drawn(d: int, s: int, dtype: str = "float64") -> tuple[Any, Any]:
    """Signs and lengths of s rows."""
    rng, size = np.random.default_rng(d), padded_size(d)
    signs = rng.integers(0, 256, (-(-s // size), ROUNDS, size // 8), np.uint8)
    return signs, rng.uniform(0.5, 2, s).astype(dtype)


def matrix(d: int, signs: Any, lengths: Any) -> Any:
    """The rows of all blocks S H D₁ H D₂ H D₃, cut to d columns: the definition."""
    size = padded_size(d)
    of_ones, blocks = hadamard(size), []
    for bits in signs:
        first, second, third = (np.diag(np.where(np.unpackbits(one) == 1, -1.0, 1.0)) for one in bits)
        blocks.append(of_ones @ first @ of_ones @ second @ of_ones @ third)
    return lengths.astype(np.float64)[:, None] * np.concatenate(blocks)[: len(lengths), :d]


def rotated(rows: Any, signs: Any, lengths: Any, first: int = 0, last: int | None = None) -> Any:
    last = len(lengths) if last is None else last
    out = np.full((len(rows), last - first), np.nan, rows.dtype)
    tiles = tiles_of(rows)
    rotate(tiles, np.empty_like(tiles[:1]), NOTHING_KEPT, signs, lengths, first, last, out)
    return out


@every_dtype
@every_size
def test_it_is_the_product_with_the_matrix_of_the_definition(d: int, dtype: str) -> None:
    s = 2 * padded_size(d) + 5
    signs, lengths = drawn(d, s, dtype)
    rows = np.random.default_rng(1).normal(size=(37, d)).astype(dtype)
    wanted = rows @ matrix(d, signs, lengths).T
    close = 2e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(rotated(rows, signs, lengths), wanted, rtol=0, atol=close * np.abs(wanted).max())


@every_dtype
@pytest.mark.parametrize("d", [8, 20, 300, 1 << 17])
def test_a_row_has_the_same_bits_alone_and_among_any_others(d: int, dtype: str) -> None:
    signs, lengths = drawn(d, padded_size(d) + 3, dtype)
    rows = np.random.default_rng(1).normal(size=(5 if d > 1000 else 67, d)).astype(dtype)
    whole = rotated(rows, signs, lengths)
    for first, last in ((0, 1), (1, 3), (0, 5), (3, 36), (66, 67), (34, 67)):
        part = rows[first:last]
        assert rotated(part, signs, lengths).tobytes() == whole[first:last].tobytes()


@every_dtype
def test_a_rotation_is_kept_for_the_next_slice(dtype: str) -> None:
    signs, lengths = drawn(20, 90, dtype)
    rows = np.random.default_rng(1).normal(size=(67, 20)).astype(dtype)
    whole, tiles = rotated(rows, signs, lengths), tiles_of(rows)
    kept, block, changed = np.empty_like(tiles), NOTHING_KEPT, signs.copy()
    assert len(tiles) == 3
    for first, last, wanted in ((0, 8, 0), (8, 16, 0), (16, 40, 1), (40, 48, 1), (64, 90, 2)):
        out = np.empty((67, last - first), dtype)
        block = rotate(tiles, kept, block, changed, lengths, first, last, out)
        assert block == wanted
        assert out.tobytes() == whole[:, first:last].tobytes()
        changed[block] ^= 255  # the block is not rotated again
    assert rotate(tiles, kept[:1], block, signs, lengths, 0, 32, np.empty((67, 32), dtype)) == NOTHING_KEPT


def test_frequencies_have_their_scales_on_the_columns_and_the_dtype_asked_for() -> None:
    signs, lengths = drawn(11, 40)
    scales = np.geomspace(0.1, 10, 11)
    wanted = matrix(11, signs, lengths) / gain(16) * scales
    found = frequencies_of(signs, lengths, scales, np.dtype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    single = frequencies_of(signs, lengths, scales, np.dtype(np.float32))
    assert (single == found.astype(np.float32)).all()


def test_computing_frequencies_of_many_columns_pauses() -> None:
    signs, lengths = drawn(500, 9)
    pauses: list[None] = []
    frequencies_of(signs, lengths, np.ones(500), np.dtype(np.float64), lambda: pauses.append(None))
    assert len(pauses) > 10
