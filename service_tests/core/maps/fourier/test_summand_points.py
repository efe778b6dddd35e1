"""Point sets in which nothing is random give every summand of a kernel points of its own."""

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from service_tests.core.specs import fourier, kernel, sampler

D, SIZE, SUBSETS = 10, 128, [[i, (i + 1) % 10, (i + 4) % 10] for i in range(10)]
ANOVA = {"kind": "anova", "length_scale": 1.5, "subsets": SUBSETS}
SEQUENCES: list[dict[str, Any]] = [
    {"kind": "sobol", "scramble": False},
    {"kind": "halton", "scramble": "none"},
    {"kind": "halton", "scramble": "reverse_radix", "skip": 5, "leap": 6},
    {"kind": "digital_net", "scramble": False},
]


def blocks(over: dict[str, Any], size: int = SIZE, subsets: Any = None) -> list[Any]:
    """The frequencies of each subset on its own coordinates."""
    subsets = SUBSETS if subsets is None else subsets
    made = fourier(
        input_dim=D, kernel=ANOVA | {"subsets": subsets}, sampler=over, s=size * len(subsets), dtype="float64"
    )
    parts = np.split(made.arrays["frequencies"], len(subsets))
    return [part[:, subset] for part, subset in zip(parts, subsets, strict=True)]


@pytest.mark.parametrize("over", SEQUENCES, ids=lambda over: over["kind"])
def test_each_takes_the_sequence_up_where_the_last_has_left_it(over: dict[str, Any]) -> None:
    gaussian = kernel(kind="gaussian", length_scale=1.5)
    whole = sampler(**over).frequency_set(gaussian, SIZE * len(SUBSETS), 3, np.random.default_rng(0)).frequencies
    np.testing.assert_array_equal(np.concatenate(blocks(over)), whole)


def test_lattices_are_moved_into_the_gaps_of_those_before_them() -> None:
    size, subsets = 64, SUBSETS[:4]
    points = [ndtr(1.5 * part) for part in blocks({"kind": "lattice", "shift": False}, size, subsets)]
    places = np.round((np.concatenate(points) - 0.5 / size) * 4 * size, 9) % (4 * size)
    np.testing.assert_allclose(places, np.round(places), atol=1e-6)
    # Together they are the lattice of the same vector with four times as many points, none of them twice.
    vector = places[np.flatnonzero(places[:, 0] == places[:, 0][places[:, 0] > 0].min())[0]]
    assert len(np.unique(places.round().astype(int), axis=0)) == 4 * size
    assert {tuple(place) for place in places.round().astype(int)} >= {
        tuple(place) for place in (np.arange(4)[:, None] * vector.round().astype(int)) % (4 * size)
    }
