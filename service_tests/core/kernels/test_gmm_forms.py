"""The min-max kernel of dense with sparse rows: which form both take, and that none is taken of no rows."""

from typing import Any

import numpy as np
from scipy import sparse

from app.core.kernels.gmm import GeneralizedMinMax
from service_tests.core.kernels.test_gmm import D, csr, gmm, rows


def forms(made: GeneralizedMinMax, x: Any, y: Any) -> list[str]:
    one, other = made.in_one_form(x, y)
    return ["dense" if isinstance(rows, np.ndarray) else "sparse" for rows in (one, other)]


def test_a_dense_and_a_sparse_block_are_compared_in_the_smaller_form() -> None:
    many, few = np.ones((50, D)), rows("sparse", 2, 1)
    thin = np.zeros((50, D))
    thin[:, 1] = 1
    for x, y, form, entries in (
        (many, csr(few), "dense", 50 * D),
        (thin, csr(few), "dense", 50 * D),
        (thin, csr(many), "sparse", 50),
        (many[:2], csr(thin), "sparse", 2 * D),
    ):
        assert forms(gmm(), x, y) == forms(gmm(), y, x) == [form, form]
        assert gmm().entry_counts(x, y)[0] == gmm().entry_counts(y, x)[1] == entries
        np.testing.assert_allclose(gmm().exact(x, y), gmm().exact(x, y.toarray()), rtol=1e-14)
        np.testing.assert_allclose(gmm().exact(y, x), gmm().exact(y.toarray(), x), rtol=1e-14)


def test_a_sparse_block_against_a_dense_one_of_few_entries_is_not_made_dense() -> None:
    d = 1 << 20
    few = np.zeros((1, d))
    few[0, [0, d - 1]] = [1.0, -2.0]
    n = 20_000
    many = sparse.csr_array((np.full(n, -1.0), np.full(n, d - 1), np.arange(n + 1)), shape=(n, d))
    # Dense it would take 168 GB.
    assert (gmm().exact(few, many) == 1 / 3).all()
    assert (gmm().exact(many, few) == 1 / 3).all()
