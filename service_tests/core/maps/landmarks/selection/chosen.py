"""Kernels and rows to select landmarks for, runs of a selection, and what is true of landmarks by brute force."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest

from app.core.arrays import Floats, Matrix, Rows, dense
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.selection import SELECTIONS, Selected, base, k_means
from app.core.progress import Progress
from service_tests.core.combinations import Fields, named, variants
from service_tests.core.combinations import rows as drawn
from service_tests.core.specs import KERNELS, kernel

every_selection = pytest.mark.parametrize("name", SELECTIONS)
every_kernel = pytest.mark.parametrize("its_kernel", [k for model in KERNELS for k in variants(model)], ids=named)

GAUSSIAN = kernel(kind="gaussian", length_scale=1.5)


class Linear(AnyKernel):
    """x·z: its kernel matrices have the rank of the rows, and rows may have kernel 0."""

    kind: Literal["linear"] = "linear"

    def check(self, input_dim: int) -> None:
        pass

    def compare_with(self, y: Rows) -> Callable[[Rows], Matrix]:
        return lambda x: dense(x) @ dense(y).T

    def pairs(self, x: Rows, y: Rows) -> Matrix:
        found: Matrix = np.einsum("ij,ij->i", dense(x), dense(y))
        return found


def prepared(its_kernel: AnyKernel, n: int = 60, seed: int = 1, dtype: str = "float64") -> Floats:
    """Rows that the kernel takes, which nobody may write to."""
    some = drawn(n, seed, dtype=dtype)
    try:
        rows = its_kernel.prepare(some)
    except InvalidInput:
        rows = its_kernel.prepare(np.abs(some))
    assert isinstance(rows, np.ndarray)
    rows.setflags(write=False)
    return rows


def of(fields: Fields) -> AnyKernel:
    """The kernel of these fields."""
    made = kernel(**fields)
    assert isinstance(made, AnyKernel)
    return made


def run(
    name: str,
    its_kernel: AnyKernel,
    rows: Rows,
    s: int,
    seed: int = 5,
    progress: Progress | None = None,
    threads: int = 1,
) -> Selected:
    """A selection with random numbers of a seed."""
    return SELECTIONS[name](its_kernel, rows, s, np.random.default_rng(seed), progress or Progress(), threads)


def brute_force_residual(its_kernel: AnyKernel, rows: Rows, landmarks: Rows) -> Matrix:
    """K − K(X, L) K(L, L)⁺ K(L, X), (n, n)."""
    across = its_kernel.exact(rows, landmarks)
    inner = np.linalg.pinv(its_kernel.exact(landmarks, landmarks), rcond=1e-13, hermitian=True)
    residual: Matrix = its_kernel.exact(rows, rows) - across @ inner @ across.T
    return residual


def trace_error(its_kernel: AnyKernel, rows: Rows, landmarks: Rows) -> float:
    """Σ k(x, x) − ‖z(x)‖² over Σ k(x, x)."""
    left = brute_force_residual(its_kernel, rows, landmarks).diagonal().sum()
    return float(left / its_kernel.pairs(rows, rows).sum())


def numbers_of(rows: Floats, landmarks: Rows) -> list[int]:
    """Which of the rows, no two of which are equal, the landmarks are."""
    places = {row.tobytes(): i for i, row in enumerate(rows)}
    return [places[row.tobytes()] for row in (landmarks if isinstance(landmarks, np.ndarray) else landmarks.toarray())]


@pytest.fixture
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that work on little data has many steps."""
    for module, name, value in (
        (base, "_VALUES_PER_PART", 200),
        (base, "MOST_COMPARED", 3),
        (k_means, "_DIFFERENCES_PER_PART", 1500),
        (k_means, "_VALUES_PER_PART", 300),
    ):
        monkeypatch.setattr(module, name, value)
