import numpy as np
import pytest
from scipy import sparse

from app.core.indexes.labels import pack_rows, unpack_rows

RNG = np.random.default_rng(5)
DENSE = RNG.normal(size=(6, 9)) * (RNG.random((6, 9)) < 0.6)
NARROW = DENSE.astype(np.float32)


def as_dense(rows: object) -> np.ndarray:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)  # type: ignore[attr-defined]


@pytest.mark.parametrize("rows", [DENSE, NARROW, DENSE.astype(np.float64) * 1e300, NARROW * np.float32(1e38)])
def test_dense_and_sparse_rows_come_back_bit_for_bit(rows: np.ndarray) -> None:
    with np.errstate(over="ignore"):
        rows = np.where(np.isfinite(rows), rows, 1.0)
    both = pack_rows(rows), pack_rows(sparse.csr_array(rows))
    for found in both:
        again = unpack_rows(found, 9)
        assert again.dtype == np.float64
        np.testing.assert_array_equal(as_dense(again), rows.astype(np.float64))
    assert sparse.issparse(unpack_rows(both[1], 9))
    assert not sparse.issparse(unpack_rows(both[0], 9))


def test_what_is_no_row_is_refused() -> None:
    rows = sparse.csr_array(NARROW[:1])
    for stored in (b"", b"\7", pack_rows(NARROW)[0][:-1], pack_rows(rows)[0] + b"\0", b"\2\1"):
        with pytest.raises((ValueError, IndexError)):
            unpack_rows([*pack_rows(rows), stored], 9)
        with pytest.raises((ValueError, IndexError)):
            unpack_rows([*pack_rows(NARROW), stored], 9)
    with pytest.raises(ValueError, match="has an entry"):
        unpack_rows(pack_rows(sparse.csr_array(np.eye(9)[8:])), 8)
