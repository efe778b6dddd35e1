from typing import Any

import numpy as np
import pytest

from app.core.diagnostics import error_matrix
from app.core.diagnostics.error_matrix import HermitianTiles, tile_places
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


@pytest.fixture(params=[100, 128, 2048])
def tile_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(error_matrix, "TILE_ROWS", request.param)
    return int(request.param)


@pytest.mark.usefixtures("tile_rows")
@each("is_complex", [False, True])
@each("n", [1, 2, 64, 65, 203, 301])
def test_the_spectral_norm_is_that_of_the_whole_matrix(n: int, is_complex: bool) -> None:
    for scale in (1.0, 1e-12, 1e9):
        matrix = hermitian(n, is_complex, scale)
        wanted = np.abs(np.linalg.eigvalsh(matrix)).max()
        assert tiles(matrix).spectral_norm() == pytest.approx(wanted, rel=3e-7)
