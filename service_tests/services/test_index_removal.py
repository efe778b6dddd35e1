"""Many vectors are removed in an order in which hardly any other moves."""

import random

import numpy as np
import pytest

from app.core.indexes.options import Batch, DeleteOptions, Filter
from app.services.index_vectors import _order_of_removal
from service_tests.services.crowds import GMM, remove, service_with


def test_no_vector_moves_twice_or_is_removed_afterwards() -> None:
    rng = random.Random(6)
    for _ in range(300):
        size = rng.randrange(1, 30)
        doomed = rng.sample(range(size), rng.randrange(size + 1))
        slots = [*doomed, -1, -1]
        rng.shuffle(slots)
        there, moves = [*range(size)], list[int]()
        order = _order_of_removal(np.array(slots), size).tolist()
        early = _order_of_removal(np.array(slots), rng.randrange(size)).tolist()  # the size was read earlier
        assert sorted(early) == sorted(order) == [*range(len(slots))]
        for i in order:
            if slots[i] >= 0:
                at, last = there.index(slots[i]), there.pop()
                if at < len(there):
                    there[at] = last
                    moves.append(last)
        assert sorted(there) == sorted({*range(size)} - {*doomed})
        assert len({*moves}) == len(moves)
        assert not {*moves} & {*doomed}
        assert len(moves) == sum(slot < size - len(doomed) for slot in doomed)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("by_filter", [False, True])
def test_those_are_removed_that_are_named(store_url: str, by_filter: bool) -> None:
    service, n = service_with(store_url, GMM, keep="vectors"), 700
    rows, rng = np.random.default_rng(3).gamma(2, size=(n, 5)), random.Random(7)
    doomed = rng.sample(range(n), 450)
    tags = ["doomed" if i in doomed else None for i in range(n)]
    service.index_upserts.upsert("i", lambda *_: Batch(rows, [*range(n)], tags))
    asked = DeleteOptions(filter=Filter(all=("doomed",))) if by_filter else DeleteOptions(ids=(*doomed, "none", n))
    removal = remove(service, "i", asked)
    assert removal.removed.tolist() == [True] * 450 + [False] * (0 if by_filter else 2)
    page, _ = service.index_vectors.read_page("i", None, 1000, None, False)
    assert {one["id"] for one in page} == {*range(n)} - {*doomed}
    for i in rng.sample(sorted({*range(n)} - {*doomed}), 20):
        assert service.index_vectors.get("i", i, True)["vector"] == pytest.approx(rows[i])
