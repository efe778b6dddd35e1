import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from app.core.arrays import dense
from app.core.maps.landmarks.selection.values import operations_per_row, own_values, stacked, values
from service_tests.cases import each
from service_tests.core.combinations import Fields
from service_tests.core.maps.landmarks.selection.chosen import every_kernel, every_selection, of, prepared, run


@every_kernel
@each("dtype", ["float32", "float64"])
def test_values_are_those_of_the_kernel_in_both_forms(its_kernel: Fields, dtype: str) -> None:
    made = of(its_kernel)
    x, y = prepared(made, 30, dtype=dtype), prepared(made, 7, seed=2, dtype=dtype)
    wanted = made.exact(x, y)
    assert np.array_equal(values(made, x, y), wanted)
    assert values(made, sparse.csr_array(x), sparse.csr_array(y)) == pytest.approx(wanted, abs=1e-12)
    for form in (np.array, sparse.csr_array):
        assert own_values(made, form(x)) == pytest.approx(made.exact(x, x).diagonal(), rel=1e-14)
        few, many = (operations_per_row(made, form(x), form(y[:count])) for count in (1, 7))
        assert 0 < 6 * few <= many
        assert operations_per_row(made, form(x), form(y[:0])) == 0


def test_blocks_are_stacked_in_their_form() -> None:
    blocks = np.ones((1, 2)), np.zeros((2, 2))
    assert dense(stacked(blocks)).tolist() == [[1, 1], [0, 0], [0, 0]]
    below = stacked([sparse.csr_array(block) for block in blocks])
    assert sparse.issparse(below)
    assert dense(below).tolist() == [[1, 1], [0, 0], [0, 0]]


@every_selection
@pytest.mark.parametrize("its_kernel", [{"kind": "gaussian", "length_scale": 4.0}, {"kind": "gmm"}], ids=str)
def test_rows_with_a_million_columns_stay_sparse(name: str, its_kernel: Fields) -> None:
    # One of them takes 8 MB in dense form; all have entries in common, as words of texts.
    rng, made = np.random.default_rng(1), of(its_kernel)
    columns = np.minimum(rng.pareto(0.3, size=(150, 20)), (1 << 20) - 1).astype(np.int64)
    rows = sparse.csr_array((rng.exponential(size=3000), (np.arange(150).repeat(20), columns.ravel())), (150, 1 << 20))
    tracemalloc.start()
    found = run(name, made, rows, 40)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()
    assert found.landmarks.shape == (40, 1 << 20)
    assert sparse.issparse(found.landmarks)
