"""What other kinds of processors build and compute has the same bits, but for what is listed here, and nothing else.

The page docs/explanation/other-processors.md says so to users; the table there is measured by the same processes.
"""

from pathlib import Path
from typing import Any

import pytest

from service_tests.core.elsewhere import IMITATED, Key, differing, elsewhere, here

pytestmark = pytest.mark.skipif(not IMITATED, reason="other processors are imitated on Linux with x86-64 only")

LEARNED = ("weighted", "global_adaptive", "greedy_adaptive", "reweighted_grid")
LANDMARKS = ("landmarks", "uploaded_landmarks")
BY_LIBRARIES = ("laplacian", "gmm", "chi_squared")
"""Kernels whose values with landmarks take exponentials and roots of libraries."""
WITH_GAMMA_LAW = ("matern", "rational_quadratic")


def may_differ(key: Key, older: bool) -> bool:
    """Whether it hangs on the processor; `older` ones have no fused multiply-add, and another C library's functions."""
    if key.what == "exact kernel":
        return key.kernel != "polynomial"
    if not key.is_array:
        return key.sampler in LANDMARKS and key.kernel in BY_LIBRARIES
    if key.sampler in LEARNED or key.what == "root":
        return True
    if key.sampler == "structured_orthogonal":
        return key.what == "radii" and (older or key.kernel == "rational_quadratic")
    return older and key.kernel in WITH_GAMMA_LAW and key.what == "frequencies" and key.sampler != "uploaded"


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for loops that are compiled for another processor, which takes a quarter of a minute."""
    return tmp_path_factory.mktemp("loops")


def checked(found: dict[str, dict[str, Any]]) -> set[Key]:
    """What differs anywhere from the first kind; a failure where it must not."""
    (_, first), *others = found.items()
    differs: set[Key] = set()
    for kind, other in others:
        wrong = {key for key in differing(first, other) if not may_differ(key, kind == "SSE4.2")}
        assert not wrong, f"on a processor with {kind}"
        differs |= differing(first, other)
    return differs


@pytest.mark.nightly
@pytest.mark.parametrize(("d", "samplers"), [(4, ""), (20, ""), (90, "orthogonal moment_matching polynomially_exact")])
def test_every_map_is_the_same_bits_but_those_that_are_listed(
    d: int, samplers: str, tmp_path: Path, loops: Path
) -> None:
    frozen = tmp_path / "frozen.npz"
    found = {
        kind: elsewhere(kind, tmp_path / f"{kind}.npz", frozen, d, samplers=samplers, loops=loops) for kind in here()
    }
    if d == 20:  # maps do not hang on the number of threads either, wherever they are built
        kind = here()[0]
        alone, shared = found[kind], elsewhere(kind, tmp_path / "threads.npz", frozen, d, 2, samplers)
        assert not differing(alone, shared)
    differs = checked(found)
    if d == 4 and len(found) == 3:  # and the list is not longer than it must be
        assert {key.sampler for key in differs if key.is_array and key.kernel == "gaussian"} == {
            *LEARNED,
            *LANDMARKS,
            "structured_orthogonal",
        }
        assert {key.kernel for key in differs if key.sampler == "sobol" and key.is_array} == {*WITH_GAMMA_LAW}
        assert {key.kernel for key in differs if key.sampler == "landmarks" and key.what == "features"} == {
            *BY_LIBRARIES
        }
