"""How often intervals hold the kernel, counted over maps of some seeds and pairs of rows."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.interval_coverage import ENCODINGS, Coverage, coverage, row_pairs

LETTERS = Path(__file__).parents[3] / "examples" / "letters.npy"


@cache
def pairs_of(kind: str) -> tuple[Any, Any]:
    """Pairs of letters, or of rows that one column rules."""
    if kind == "letters":
        return row_pairs(np.load(LETTERS).astype(np.float64), 40)
    rows = np.random.default_rng(0).standard_normal((80, 12))
    rows[:, 3] = np.random.default_rng(1).lognormal(3, 1, 80)
    return rows[:40], rows[40:]


def at_least(found: Any, share: float, allowed: float = 3) -> bool:
    """Whether the mean over maps is no less than a share, up to standard errors; pairs of a map share its hashes."""
    return bool(found.mean() + allowed * found.std(ddof=1) / np.sqrt(len(found)) > share)


def check(found: Coverage) -> None:
    assert found.held.mean() > 0.93
    assert at_least(-found.inner, -0.97)


@pytest.mark.parametrize("kind", ["letters", "ruled"])
@pytest.mark.parametrize("name", ["full", "0-bit", "4 bits of index", "2 bits of mixed_index", "2 bits of pair"])
def test_a_few_maps_hold_the_kernel_as_often_as_they_say(name: str, kind: str) -> None:
    check(coverage(*pairs_of(kind), ENCODINGS[name], 64, range(20)))


@pytest.mark.parametrize("name", ["full", "0-bit", "4 bits of index"])
def test_the_rbf_kernel_is_held_where_standard_errors_alone_miss_it(name: str) -> None:
    found = coverage(*pairs_of("ruled"), ENCODINGS[name], 256, range(20), gamma=5.0)
    check(found)
    assert found.within_errors.mean() < 0.6
