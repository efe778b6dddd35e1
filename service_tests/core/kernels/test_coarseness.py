"""Which rows a dtype is too coarse for, by the kernel's own length scales."""

import tracemalloc
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse

from app.core.kernels.rounding import MOST, coarseness_warnings
from app.core.maps import make_map
from service_tests.cases import each
from service_tests.core.specs import kernel, spec

FLOAT32 = np.dtype(np.float32)
EPSILON = 2.0**-23
RNG = np.random.default_rng(5)


def told(rows: Any, counts_exact: bool = True, dtype: Any = FLOAT32, **fields: Any) -> tuple[str, ...]:
    its_kernel = kernel(**{"kind": "gaussian", "length_scale": 10.0} | fields)
    return coarseness_warnings(its_kernel.rounding(np.dtype(dtype)), rows, counts_exact, "vectors")


@each("form", [np.asarray, sparse.csr_array])
@each(
    ("fields", "size"),
    [
        ({}, lambda x: np.linalg.norm(x / 10, axis=1)),
        ({"length_scale": [1.0, 20.0, 3.0]}, lambda x: np.linalg.norm(x / [1, 20, 3], axis=1)),
        ({"kind": "laplacian"}, lambda x: np.abs(x / 10).sum(axis=1)),
        ({"kind": "matern", "nu": 0.5}, lambda x: np.linalg.norm(x / 10, axis=1)),
        (
            {"kind": "anova", "subsets": [[0], [2, 0]], "length_scale": [1.0, 1e-9, 3.0]},
            lambda x: np.linalg.norm(x[:, [0, 2]] / [1, 3], axis=1),
        ),
    ],
)
def test_the_spacing_is_taken_in_the_metric_of_the_kernel(fields: dict[str, Any], size: Any, form: Any) -> None:
    for _ in range(30):
        row = RNG.normal(size=(1, 3)) * [1.0, 5.0, 2.0]
        row *= MOST / EPSILON / size(row)[0]
        assert not told(form(0.999 * row), **fields)
        assert told(form(1.001 * row), **fields)


@pytest.mark.parametrize("sampler", ["sobol", "uploaded_landmarks"])
def test_the_warning_comes_where_features_are_off_by_more_than_some_1e_4_and_only_there(sampler: str) -> None:
    """The error that float32 adds to the kernel, beside that of a float64 map with the same arrays."""
    for shift, is_coarse in ((30.0, False), (1e4, False), (3e5, True), (1e8, True)):
        x = shift + 10 * RNG.random((60, 4))
        own = {"kind": sampler} | ({"landmarks": x[:40].tolist()} if sampler == "uploaded_landmarks" else {})
        kwargs = {"sampler": own, "s": None if "landmarks" in own else 512, "kernel": {"kind": "gaussian", "sigma": 5}}
        single, double = (make_map(spec(**kwargs, dtype=dtype)) for dtype in ("float32", "float64"))
        added = np.abs(single.gram(x, x) - double.gram(x, x)).max()
        assert bool(single.warnings(x)) == is_coarse, shift
        assert double.warnings(x) == ()
        assert added < 1e-3 if not is_coarse else added > 1e-5


@each("fields", [{}, {"kind": "anova", "subsets": [[0, 999], [5]]}])
def test_short_rows_of_many_columns_are_looked_at_together_and_take_no_memory(fields: dict[str, Any]) -> None:
    rows = sparse.csr_array((np.full(1000, 1e9), (range(1000), np.full(1000, 999))), shape=(1000, 1 << 24))
    rounding: Any = kernel(**{"kind": "gaussian", "length_scale": 10.0} | fields).rounding(FLOAT32)
    tracemalloc.start()
    with patch.object(rounding, "sizes", wraps=rounding.sizes) as sizes:
        assert "1000 of 1000" in coarseness_warnings(rounding, rows, True, "vectors")[0]
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert sizes.call_count == 1
