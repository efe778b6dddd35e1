from typing import Any

import numpy as np
import pytest

from app.core.diagnostics import hermitian_tiles
from app.core.diagnostics.hermitian_tiles import HermitianTiles, tile_places
from app.core.progress import Pause
from service_tests.cases import each


def hermitian(n: int, is_complex: bool, scale: float) -> Any:
    rng = np.random.default_rng(n)
    matrix = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if is_complex else 0)
    return scale * (matrix + matrix.conj().T)


def tiles(matrix: Any) -> HermitianTiles:
    held = HermitianTiles(len(matrix), np.iscomplexobj(matrix))
    for rows, columns in tile_places(len(matrix)):
        held.add(matrix[rows, columns])
    return held


def pausing(times: int) -> Pause:
    """A pause that ends the work when it comes once more."""
    left = iter(range(times))

    def pause() -> None:
        next(left)

    return pause


def test_a_tile_is_not_set_where_a_pause_ends_the_work() -> None:
    held, matrix = HermitianTiles(3, False), hermitian(3, False, 1.0)
    done = tiles(matrix)
    for pauses in (1, 2):
        with pytest.raises(StopIteration):
            held.add(matrix, pausing(pauses - 1))
        assert len(held.missing) == 1
        assert held.sum == held.squares == held.largest == 0
    held.add(matrix, lambda: None)
    assert (held.sum, held.squares, held.largest) == (done.sum, done.squares, done.largest)


@pytest.fixture(params=[100, 128, 2048])
def tile_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(hermitian_tiles, "TILE_ROWS", request.param)
    return int(request.param)


@pytest.mark.usefixtures("tile_rows")
@each("is_complex", [False, True])
@each("n", [1, 2, 64, 65, 203, 301])
def test_the_spectral_norm_is_that_of_the_whole_matrix(n: int, is_complex: bool) -> None:
    for scale in (1.0, 1e-12, 1e9):
        matrix = hermitian(n, is_complex, scale)
        wanted = np.abs(np.linalg.eigvalsh(matrix)).max()
        assert tiles(matrix).spectral_norm() == pytest.approx(wanted, rel=3e-7)
