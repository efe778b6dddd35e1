"""Blocks hold what the service takes in one body, and what it answers to without a pause."""

from typing import Any

import numpy as np
from scipy import sparse

from bochner_client.rows import vectors_body
from bochner_client.transformers.blocks import cuts
from bochner_client.transformers.rows import Rows
from service_tests.cases import each

SPARSE: Any = sparse.random_array((3000, 9000), density=0.002, format="lil", rng=np.random.default_rng(1))
SPARSE[500, :] = 0.12345678901234567
ROWS: dict[str, Any] = {
    "dense": np.random.default_rng(1).standard_normal((3000, 40)),
    "sparse": SPARSE.tocsr(),
    "sparse, the same number of entries each": sparse.csr_array(np.eye(3000, 4000) / 3),
}


@each("kind", ROWS)
@each("most", [20_000, 400_000])
def test_every_row_is_in_one_block_whose_body_is_within_the_limit(kind: str, most: int) -> None:
    rows = Rows(ROWS[kind])
    found = list(cuts(rows, 4, {"max_body_bytes": most}))
    assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])]
    assert found[-1][1] == 3000
    bodies = [vectors_body(rows.block(*cut)).length for cut in found]
    too_long = [cut for cut, length in zip(found, bodies, strict=True) if length > most]
    assert too_long == ([(500, 501)] if kind == "sparse" and most < 300_000 else [])
    assert np.median(bodies) > most / 4
