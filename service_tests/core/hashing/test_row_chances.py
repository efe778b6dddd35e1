"""How often codes of different samples agree: the closed form beside enumeration, and beside what hashes do."""

from typing import Any

import numpy as np
import pytest

from app.core.hashing.code_laws import row_chances
from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.kernels.gmm import GeneralizedMinMax
from service_tests.cases import each, few_and_many
from service_tests.core.specs import hashing, pairs

D = 5
BY = {
    "zero_bit": Encoder(Encoding.zero_bit),
    "index 1": Encoder(Encoding.b_bit, 1),
    "index 2": Encoder(Encoding.one_hot, 2),
    "index 8": Encoder(Encoding.b_bit, 8),
    "mixed 3": Encoder(Encoding.b_bit, 3, BitsOf.mixed_index),
}


def rows(n: int = 20, d: int = D) -> Any:
    """Rows in which one column weighs most, and some entries are 0."""
    rng = np.random.default_rng(4)
    found = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.8)
    found[:, 1] = rng.uniform(2, 6, n)
    return found


def weights(row: Any, p: float, center: Any) -> Any:
    return np.stack([np.maximum(row - center, 0), np.maximum(center - row, 0)], axis=1).reshape(-1) ** p


def by_arrivals(u: Any, v: Any, kept: int | None) -> float:
    """First arrivals on intervals of these lengths: all ways in which the samples differ and the codes do not."""
    same = different = 0.0
    for mine, other in ((u, v), (v, u)):
        for i, more in enumerate(np.maximum(mine - other, 0)):
            different += more
            for j, later in enumerate(other / other.sum()):
                same += more * later * (i == j if kept is None else i % 2**kept == j % 2**kept)
    return same / different


def apart(kind: int) -> Any:
    """Rows that are equal in a coordinate or have it alone, the half of `kind` 0 or 1 of each pair."""
    rng = np.random.default_rng(6)
    both = rng.standard_normal((10, D)) * [1, 4, 1, 1, 1]
    found = np.where(rng.integers(0, 3, (10, D)) == 1 + kind, 0, both)
    found[:, 0] = 1
    return found


@each(("p", "center"), [(1.0, None), (0.5, None), (2.0, (0.5, -1.0, 0.0, 2.0, 1.0))])
@each("name", ["index 1", "index 2", "mixed 3"])
def test_it_counts_first_arrivals_where_no_entries_differ_but_from_0(name: str, p: float, center: Any) -> None:
    at = np.zeros(D) if center is None else np.array(center)
    x, y = apart(0) + at, apart(1) + at
    kernel = GeneralizedMinMax(kind="gmm", p=p, center=center)
    kept = int(name[-1]) if name.startswith("index") else None
    wanted = np.array([by_arrivals(weights(a, p, at), weights(b, p, at), kept) for a, b in zip(x, y, strict=True)])
    if name == "mixed 3":
        wanted += (1 - wanted) / 8
    found = row_chances(BY[name], kernel, x, y)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-15)
    assert np.ptp(found) > 0.1 or name == "mixed 3"


@pytest.mark.parametrize("s", few_and_many(1 << 16, 1 << 19))
@pytest.mark.parametrize("name", BY)
def test_hashes_agree_as_often(name: str, s: int) -> None:
    x, y = rows()[:10], rows()[10:]
    made, by = hashing(input_dim=D, s=s), BY[name]
    of_x, of_y = pairs(made, x), pairs(made, y)
    different = (of_x != of_y).any(axis=2)
    same = (by.encode(of_x) == by.encode(of_y)) & different
    found, counted = made.chances(x, y, by), same.sum(axis=1) / different.sum(axis=1)
    assert counted.mean() > 0.2
    # One standard error of a pair is √(p(1 − p)/n). Entries of two coordinates hang together a little more than said.
    error = np.sqrt(counted * (1 - counted) / different.sum(axis=1))
    assert (np.abs(counted - found) < 4 * error + 0.012).all()
    arrivals = [by_arrivals(weights(a, 1, 0), weights(b, 1, 0), None) for a, b in zip(x, y, strict=True)]
    if name == "zero_bit":
        assert np.abs(counted - found).mean() < 0.7 * np.abs(counted - arrivals).mean()


@pytest.mark.parametrize(
    ("d", "factor", "p", "short"),
    [(71, 100, 1, 0.05), (128, 20, 1, 0.01), (128, 1000, 1, 0.07), (9, 10, 110, 0.12), (9, 1.01, 1e5, 0.12)],
)
def test_rows_of_different_length_agree_up_to_what_is_documented(d: int, factor: float, p: float, short: float) -> None:
    """Of 2^13 hashes; a standard error is .006 at most. Without a correction, rates would be 1/d."""
    x = np.ones((1, d))
    made = hashing(input_dim=d, s=1 << 13, kernel={"kind": "gmm", "p": p})
    of_x, of_y = pairs(made, x), pairs(made, factor * x)
    different = (of_x != of_y).any(axis=2)
    counted = ((of_x[..., 0] == of_y[..., 0]) & different).sum() / different.sum()
    (found,) = made.chances(x, factor * x, BY["zero_bit"])
    assert -0.02 < counted - found < short
    assert found > 3 / d or factor == 20


def test_no_rate_is_above_one() -> None:
    """One bit of the index is the same in both rows: no more than all codes agree."""
    rng = np.random.default_rng(5)
    for _ in range(100):
        x, y = np.abs(rng.standard_normal((2, 4, D))) * [[[1]], [[10]]]
        found = row_chances(BY["index 1"], GeneralizedMinMax(kind="gmm"), x, y)
        np.testing.assert_allclose(found, 1, rtol=1e-12)
        assert (row_chances(BY["index 2"], GeneralizedMinMax(kind="gmm"), x, y) <= 1).all()
