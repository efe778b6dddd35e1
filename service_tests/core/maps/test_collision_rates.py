"""How often codes by GCWS and by darts agree, over 200,000 hashes, against the exact min-max kernel."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from service_tests.cases import each, with_nightly
from service_tests.core.specs import darts, hashing, pairs

S, D = 200_000, 5
CENTER = [0.5, -1.0, 0.0, 2.0, 0.25]

PAIRS: dict[str, tuple[list[float], list[float]]] = {
    "signed": ([1.0, -2.0, 0.5, -0.3, 3.0], [0.7, -2.5, -0.5, -0.1, 1.0]),
    "mostly opposite": ([1.0, -2.0, 0.5, -0.3, 3.0], [-0.7, 2.5, -0.5, -0.1, -1.0]),
    "sparse": ([0, 0, 1.5, 0, -2.0], [0.4, 0, 1.0, 0, -3.0]),
    "positive": ([0.2, 1.0, 0.7, 2.0, 0.1], [0.3, 0.8, 1.5, 0.4, 0.9]),
    "one shared coordinate": ([0, 0, 1.5, -1.0, 0], [2.0, 0, 1.0, 0, -0.5]),
    "scaled": ([1.0, -2.0, 0.5, -0.3, 3.0], [1.5, -3.0, 0.75, -0.45, 4.5]),
    "tiny": ([1e-9, -2e-9, 0, 0, 1e-9], [2e-9, -2e-9, 1e-9, 0, 0]),
}


def min_max(u: Any, v: Any, p: float, center: Any) -> float:
    """Of the explicitly transformed vectors."""
    a, b = (np.asarray(row, np.float64) - (center or [0.0] * D) for row in (u, v))
    a, b = (np.concatenate([np.maximum(row, 0), np.maximum(-row, 0)]) for row in (a, b))
    return float((np.minimum(a, b) ** p).sum() / (np.maximum(a, b) ** p).sum())


@pytest.mark.parametrize("made", with_nightly([hashing], [darts]))
@each(("p", "center"), [(1.0, None), (0.5, None), (10.0, None), (0.5, CENTER), (2.0, CENTER)])
def test_pairs_agree_as_often_as_the_kernel_says(made: Any, p: float, center: Any) -> None:
    of = made(input_dim=D, s=S, kernel={"kind": "gmm", "p": p, "center": center})
    for name, (u, v) in PAIRS.items():
        codes: NDArray[np.int64] = pairs(of, np.array([u, v], np.float64))
        rate, exact = (codes[0] == codes[1]).all(axis=1).mean(), min_max(u, v, p, center)
        # Equation (12): the standard error of a mean of S independent indicators, 0.0011 at most.
        assert abs(rate - exact) < 4 * np.sqrt(exact * (1 - exact) / S) + 1e-12, name
