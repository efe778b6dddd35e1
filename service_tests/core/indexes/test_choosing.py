"""What is chosen, and what is told of bands, for rows of which all is known."""

from typing import Any

import numpy as np
import pytest

from app.core.indexes.advice import Bands, Wishes, chosen
from app.core.indexes.banding import CHANCE
from app.core.indexes.hashed_rows import FirstBands, Neighbours, law_of
from service_tests.core.specs import hashing

S, Q, N = 8, 500, 2000
WISHES = Wishes(k=1, recall=0.9, candidates=400, queries=Q, taken=50)
COSTS: Any = {"search": 1000.0, "scanned_row": 1.0, "candidate": 10.0, "band": 100.0}


def banding(bands: int, microseconds: float, serves: bool = True) -> Any:
    checked = {"recall": 0.95, "share": 0.02, "recall_standard_error": 0.001}
    told = {"bands": bands, "rows_per_band": 2, "microseconds": microseconds, "serves": serves, "checked": checked}
    return told | {"recall_of_search": 0.95 if serves else 0.5}


@pytest.mark.parametrize(
    ("microseconds", "serves", "best"), [(1, False, 5), (15, True, 5), (9, True, None), (10, True, None)]
)
def test_the_fastest_that_serves_is_taken(microseconds: float, serves: bool, best: int | None) -> None:
    scan: Any = {"microseconds": microseconds, "serves": serves, "rerank": None}
    every = [banding(2, 20), banding(5, 10), banding(7, 5, serves=False)]
    found, _ = chosen(every, scan, WISHES, N)
    assert found == (None if best is None else {"bands": best, "rows_per_band": 2})


def test_the_fewest_bands_that_have_the_recall_are_told_of_with_what_they_cost() -> None:
    """Neighbours agree first in the third band, as fourth by their codes; one in twenty agrees in the seventh.

    With the third one query, and with the fourth another, is compared with all rows.
    """
    first, others = np.full((S, Q, 1), 2), np.zeros((S, S), np.int64)
    wholes = np.full((S, Q), S)
    wholes[:, 1], wholes[:, 2] = 2, 3
    first[:, ::20] = 6
    others[:, :] = 10 * Q  # of N rows, 10 come with each band
    histogram = np.zeros(10_000, np.int64)
    histogram[3000] = Q * N
    near = Neighbours(np.zeros((Q, 1), np.int64), np.full((Q, 1), 0.8), histogram)
    bands = Bands(law_of(hashing(s=S)), near, FirstBands(first, others, wholes), N, np.full((Q, 1), 3), 100)
    one = bands.bandings(WISHES, COSTS)[0]
    assert (one["bands"], one["rows_per_band"], one["rerank"], one["serves"]) == (3, 1, 4, True)
    assert (one["checked"]["recall"], one["recall_of_search"], one["recall_of_codes"]) == (0.95, 0.95, 0)
    assert one["candidates"] == pytest.approx(N * (1 - (1 - 30 / N) * (1 - CHANCE) ** 3))
    assert one["microseconds"] == pytest.approx((1000 + 3 * 100 + N / Q + 10 * (one["candidates"] - N / Q)) / 1000)
    few = WISHES._replace(candidates=30)
    assert not bands.bandings(few, COSTS)[0]["serves"], "30 are there already, without those that chance brings"
