"""Codes by darts: the law of their collisions on rows of every kind, two-sided, beside the exact min-max kernel.

What GCWS shares with them is tested of both in `test_collision_rates`.
"""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.maps import DartMinHashMap
from service_tests.cases import with_nightly
from service_tests.core.specs import darts, pairs

WIDE, S = 1_000_000, 40_000


def text_like(entries: int, shared: float, spread: float, signed: bool, seed: int = 5) -> sparse.csr_array:
    """Two rows of so many entries of a million columns, which share a part of their columns."""
    rng = np.random.default_rng(seed)
    columns = rng.choice(WIDE, 2 * entries, replace=False)
    common = round(shared * entries)
    rows = [columns[:entries], columns[entries - common : 2 * entries - common]]
    values = np.exp(spread * rng.normal(size=2 * entries))
    if signed:
        values *= rng.choice([-1.0, 1.0], values.shape)
    others = values[entries - common : 2 * entries - common].copy()
    others[:common] *= np.exp(0.5 * rng.normal(size=common))
    both = np.concatenate(rows), np.concatenate([values[:entries], others])
    made = sparse.csr_array((both[1], both[0], [0, entries, 2 * entries]), shape=(2, WIDE))
    made.sort_indices()
    return made


def exact(x: Any, y: Any, p: float = 1.0) -> float:
    """Of the explicitly transformed rows, of any scale."""
    a, b = (sparse.csr_array(row).toarray().reshape(-1) for row in (x, y))
    a, b = (np.concatenate([np.maximum(row, 0), np.maximum(-row, 0)]) for row in (a, b))
    top = max(a.max(), b.max())
    a, b = (a / top) ** p, (b / top) ** p
    return float(np.minimum(a, b).sum() / np.maximum(a, b).sum())


def assert_agrees(made: DartMinHashMap, rows: Any, p: float = 1.0) -> None:
    """The rate at which pairs agree is within four of its standard errors, √(k(1 − k)/S)."""
    codes = pairs(made, rows)
    rate, wanted = (codes[0] == codes[1]).all(axis=1).mean(), exact(rows[[0]], rows[[1]], p)
    assert 0.001 < wanted < 0.999
    assert abs(rate - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / made.n_output)


@pytest.mark.parametrize(
    ("entries", "shared", "spread", "signed"),
    with_nightly(
        [(1, 1.0, 1.0, False), (100, 0.7, 1.0, True), (1000, 0.4, 1.0, False)],
        [(2, 0.5, 3.0, True), (100, 0.9, 20.0, False), (1000, 0.9, 0.1, True), (20_000, 0.6, 2.0, True)],
    ),
)
def test_sparse_rows_of_a_million_columns_agree_as_often_as_the_kernel_says(
    entries: int, shared: float, spread: float, signed: bool
) -> None:
    rows = text_like(entries, shared, spread, signed)
    assert_agrees(darts(input_dim=WIDE, s=S), rows)


@pytest.mark.parametrize("scale", [1e-300, 1e-40, 1.0, 1e250])
@pytest.mark.parametrize("p", [0.25, 1.0, 8.0])
def test_rows_of_any_scale_and_power_too(scale: float, p: float) -> None:
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(2, 4)) * 0.3 + [1.0, -2.0, 0.5, 0.75]
    rows[0, 2] = 0
    made = darts(input_dim=4, s=S, kernel={"kind": "gmm", "p": p})
    assert_agrees(made, scale * rows, p)


@pytest.mark.parametrize(
    "by",
    [
        *(Encoder(Encoding.b_bit, 2, of) for of in BitsOf),
        Encoder(Encoding.zero_bit),
        Encoder(Encoding.fingerprint, 8),
        Encoder(Encoding.one_hot, 3),
    ],
    ids=str,
)
def test_codes_of_different_samples_agree_at_the_rate_that_is_reckoned(by: Encoder) -> None:
    """Exactly so, as samples of darts are first arrivals: where GCWS is off by up to .12."""
    made = darts(input_dim=4, s=200_000)
    x, y = np.array([[4.0, 1.0, 0.5, 0.25]]), np.array([[1.0, 0.5, 0.25, 2.0]])
    of_x, of_y = (pairs(made, row)[0] for row in (x, y))
    differ = (of_x != of_y).any(axis=1)
    equal = (by.encode(of_x[None])[0] == by.encode(of_y[None])[0])[differ]
    (chance,) = made.chances(x, y, by)
    assert abs(equal.mean() - chance) < 4 * np.sqrt(chance * (1 - chance) / differ.sum()) + 1e-12
