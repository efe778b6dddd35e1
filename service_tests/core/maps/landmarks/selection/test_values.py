import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from service_tests.core.combinations import Fields
from service_tests.core.maps.landmarks.selection.chosen import every_selection, of, run


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
