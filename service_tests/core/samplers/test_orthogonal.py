"""Orthogonal blocks: their geometry, and the law of each frequency."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from service_tests.cases import each
from service_tests.core.specs import kernel, refusal, sampler, spec


def frequencies(s: int, d: int, seed: int = 1, length_scale: Any = 1.0) -> Any:
    gaussian = kernel(kind="gaussian", length_scale=length_scale)
    drawn = sampler(kind="orthogonal").frequency_set(gaussian, s, d, np.random.default_rng(seed))
    assert drawn.frequencies.shape == (s, d)
    assert (drawn.weights == 1 / s).all()
    return drawn.frequencies


@each(("s", "d"), [(5, 5), (3, 8), (17, 5), (64, 20), (4, 1), (1, 1000)])
@each("ard", [False, True])
def test_the_rows_of_a_block_are_orthogonal_before_scaling(s: int, d: int, ard: bool) -> None:
    scale = np.geomspace(0.1, 10, d) if ard else np.ones(d)
    rows = frequencies(s, d, length_scale=scale.tolist()) * scale
    directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for start in range(0, s, d):
        block = directions[start : start + d]
        np.testing.assert_allclose(block @ block.T, np.eye(len(block)), rtol=0, atol=1e-13)
    if s > d > 1:  # and blocks are independent of each other
        assert np.abs(directions[d:] @ directions[:d].T).max() > 1e-3


@pytest.mark.parametrize(("s", "d"), [(3000, 3), (2999, 20), (7, 20)])
def test_lengths_follow_the_chi_law_and_coordinates_the_normal_law(s: int, d: int) -> None:
    rows = np.concatenate([frequencies(s, d, seed) for seed in range(max(1, 3000 // s))])
    # Level 1e-3 each; the lengths are independent, the coordinates of one column nearly so.
    assert stats.kstest(np.linalg.norm(rows, axis=1), stats.chi(d).cdf).pvalue > 1e-3
    assert stats.kstest(rows[:, 0], "norm").pvalue > 1e-3
    assert stats.kstest(rows[:, -1], "norm").pvalue > 1e-3


def test_directions_are_uniform_in_every_place_of_a_block() -> None:
    # QR alone fixes signs: the diagonal of Q would lean to one side.
    d, seeds = 4, 4000
    blocks = np.array([frequencies(d, d, seed) for seed in range(seeds)])
    directions = blocks / np.linalg.norm(blocks, axis=2, keepdims=True)
    # A coordinate of a uniform direction has mean 0 and mean square 1/d, of variance 2(d − 1)/(d²(d + 2)).
    assert np.abs(directions.mean(axis=0)).max() < 4 / np.sqrt(d * seeds)
    squares = np.square(directions).mean(axis=0)
    assert np.abs(squares - 1 / d).max() < 4 * np.sqrt(2 * (d - 1) / (d**2 * (d + 2)) / seeds)
    for i in range(d):
        # (coordinate + 1)/2 is Beta((d − 1)/2, (d − 1)/2). Level 1e-3.
        assert stats.kstest((directions[:, i, i] + 1) / 2, stats.beta(1.5, 1.5).cdf).pvalue > 1e-3


def test_dimensions_past_the_limit_are_refused_and_as_many_are_not() -> None:
    assert spec(input_dim=4096, s=2, sampler={"kind": "orthogonal"}).input_dim == 4096
    error = refusal(input_dim=4097, s=2, sampler={"kind": "orthogonal"})
    assert error.pointer == "/sampler/kind"
    assert "orthogonal takes up to 4096 dimensions" in error.detail
    error = refusal(input_dim=2048, s=16385, sampler={"kind": "orthogonal"})
    assert error.pointer == "/s"
    assert error.detail.endswith("(sampler sobol takes more); s = 16385, take 16384")
    assert spec(input_dim=2048, s=16384, sampler={"kind": "orthogonal"}).s == 16384
