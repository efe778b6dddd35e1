"""The min-max kernel of dense with sparse rows: which form both take, and that none is taken of no rows."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.hashing import row_samples
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.maps import weighted_minhash
from service_tests.core.kernels.test_gmm import CENTER, D, csr, gmm, rows
from service_tests.core.specs import hashing


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


def test_blocks_of_one_form_are_left_in_it_and_a_centre_leaves_all_as_they_are() -> None:
    dense, sparse_rows = rows("signed", 3, 1), csr(rows("sparse", 4, 2))
    assert forms(gmm(), dense, dense) == ["dense", "dense"]
    assert forms(gmm(), sparse_rows, sparse_rows) == ["sparse", "sparse"]
    assert forms(gmm(center=CENTER), dense, sparse_rows) == ["dense", "sparse"]
    assert gmm(center=CENTER).entry_counts(dense, sparse_rows) == (3 * D, 4 * D)
    assert gmm().entry_counts(sparse_rows, sparse_rows) == (sparse_rows.nnz, sparse_rows.nnz)
    assert gmm().entry_counts(dense, dense) == (3 * D, 3 * D)


def test_a_sparse_block_against_a_dense_one_of_few_entries_is_not_made_dense() -> None:
    d = 1 << 20
    few = np.zeros((1, d))
    few[0, [0, d - 1]] = [1.0, -2.0]
    n = 20_000
    many = sparse.csr_array((np.full(n, -1.0), np.full(n, d - 1), np.arange(n + 1)), shape=(n, d))
    # Dense it would take 168 GB.
    assert (gmm().exact(few, many) == 1 / 3).all()
    assert (gmm().exact(many, few) == 1 / 3).all()


@pytest.mark.parametrize("center", [None, CENTER], ids=["plain", "centered"])
def test_a_block_against_no_rows_is_not_looked_at(center: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: Any) -> None:
        raise AssertionError("the rows were looked at")

    made = gmm(center=center)
    for name in ("_powers", "_sparse_powers"):
        monkeypatch.setattr(GeneralizedMinMax, name, look)
    monkeypatch.setattr(sparse.csr_array, "toarray", look)
    dense, sparse_rows = rows("signed", 3, 1), csr(rows("signed", 3, 1))
    for none in (dense[:0], sparse_rows[:0]):
        for some in (dense, sparse_rows):
            assert made.exact(none, some).shape == (0, 3)
            assert made.exact(some, none).shape == (3, 0)
            assert made.entry_counts(none, some) == made.entry_counts(some, none) == (0, 0)
        assert made.pairs(none, none).shape == (0,)
    with pytest.raises(AssertionError, match="looked at"):
        made.exact(dense, dense)


def test_exact_blocks_of_both_forms_are_the_same_on_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted_minhash, "STEPS_PER_THREAD", 1)
    monkeypatch.setattr(row_samples, "STEPS_PER_THREAD", 1)
    one, two = (hashing(threads, input_dim=D) for threads in (1, 2))
    # Half by half, the first would be compared in dense form and the second in sparse form.
    x = np.vstack([rows("signed", 6, 1), np.diag([1.5] * D)])
    y = csr(rows("sparse", 6, 2))
    assert forms(gmm(), x[:6], y) != forms(gmm(), x[6:], y)
    for pair in ((x, y), (y, x)):
        assert (one.exact_gram(*pair) == two.exact_gram(*pair)).all()
        assert one.kernel.exact_bytes(*pair) == 8 * sum(gmm().entry_counts(*pair))
