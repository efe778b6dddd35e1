"""Which rows a dtype is too coarse for, by the kernel's own length scales; and that the others cost next to nothing."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.kernels.coarseness import Coarseness
from app.core.kernels.rounding import MOST
from app.core.maps import made
from service_tests.cases import each
from service_tests.core.specs import kernel, spec

FLOAT32 = np.dtype(np.float32)
EPSILON = 2.0**-23
RNG = np.random.default_rng(5)


def told(rows: Any, counts_exact: bool = True, dtype: Any = FLOAT32, **fields: Any) -> tuple[str, ...]:
    its_kernel = kernel(**{"kind": "gaussian", "length_scale": 10.0} | fields)
    return Coarseness(its_kernel, np.dtype(dtype), counts_exact).warnings(rows)


def test_the_warning_says_what_came_and_the_cure_in_one_line_of_ascii() -> None:
    rows = np.zeros((7, 3))
    rows[4], rows[5] = [3.0, 1.7e9, 0.0], [1e6, 0, 0]
    (text,) = told(rows)
    assert text.isascii()
    assert text.isprintable()
    assert text.startswith("float32 is too coarse for 2 of 7 rows of vectors: at row 4 ")
    assert "entry 1.7e+09 in column 1 is 128 from the next, the length scale there is 10" in text
    assert "input" in text
    assert text.endswith("dtype float64")


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


def test_many_rows_that_are_fine_are_not_warned_of_together() -> None:
    rows = np.full((100_000, 3), 100.0)  # all squares together pass the first look
    assert not told(rows)
    rows[77_777, 2] = 1e6
    assert "1 of 100000 rows of vectors: at row 77777" in told(rows)[0]


def test_rows_that_squares_take_out_of_the_range_are_warned_of() -> None:
    assert told(np.full((2, 3), 1e30, np.float32))
    assert told(np.full((2, 3), 1e200), dtype=np.float64)


@pytest.mark.parametrize("rows", [np.empty((0, 3)), np.zeros((2, 3)), sparse.csr_array((2, 3), dtype=np.float64)])
def test_rows_without_entries_are_fine(rows: Any) -> None:
    assert told(rows) == ()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_rows_that_the_dtype_holds_count_where_products_lose_digits_of_them_alone(form: Any) -> None:
    rows = np.zeros((4, 3))
    rows[1:, 0] = [2.0**27, 2.0**27 + 1, 3.0]
    assert "2 of 4 rows" in told(form(rows))[0]
    assert "1 of 4 rows of vectors: at row 2 " in told(form(rows), counts_exact=False)[0]
    assert told(form(rows.astype(np.float32)), counts_exact=False) == ()


def test_float64_has_a_limit_of_its_own_and_no_wider_dtype_to_take() -> None:
    assert told(np.array([[1e13, 0.0, 0.0]]), dtype=np.float64) == ()
    (text,) = told(np.array([[1e15, 0.0, 0.0]]), dtype=np.float64)
    assert text.startswith("float64 is too coarse")
    assert "dtype" not in text


@pytest.mark.parametrize(
    "its_kernel",
    [
        {"kind": "correlation_rbf", "gamma": 2.0},
        {"kind": "polynomial", "degree": 2},
        {"kind": "chi_squared", "gamma": 1e-9},
        {"kind": "gmm"},
    ],
    ids=lambda fields: fields["kind"],
)
def test_kernels_without_a_length_scale_are_as_good_far_from_zero(its_kernel: dict[str, Any]) -> None:
    made_kernel = kernel(**its_kernel)
    x, y = RNG.random((2, 50, 3)) + 0.1
    assert Coarseness(made_kernel, FLOAT32, counts_exact=True).warnings(1e9 * x) == ()
    rounded = [(1e3 * rows).astype(np.float32).astype(np.float64) for rows in (x, y)]
    exact = made_kernel.exact(made_kernel.prepared(1e3 * x), made_kernel.prepared(1e3 * y))
    off = made_kernel.exact(made_kernel.prepared(rounded[0]), made_kernel.prepared(rounded[1])) - exact
    assert np.abs(off).max() < 1e-5 * np.abs(exact).max()


@pytest.mark.parametrize("sampler", ["sobol", "uploaded_landmarks"])
def test_the_warning_comes_where_features_are_off_by_more_than_some_1e_4_and_only_there(sampler: str) -> None:
    """The error that float32 adds to the kernel, beside that of a float64 map with the same arrays."""
    for shift, is_coarse in ((30.0, False), (1e4, False), (3e5, True), (1e8, True)):
        x = shift + 10 * RNG.random((60, 4))
        own = {"kind": sampler} | ({"landmarks": x[:40].tolist()} if sampler == "uploaded_landmarks" else {})
        kwargs = {"sampler": own, "s": None if "landmarks" in own else 512, "kernel": {"kind": "gaussian", "sigma": 5}}
        single, double = (made(spec(**kwargs, dtype=dtype)) for dtype in ("float32", "float64"))
        added = np.abs(single.gram(x, x) - double.gram(x, x)).max()
        assert bool(single.warnings(x)) == is_coarse, shift
        assert double.warnings(x) == ()
        assert added < 1e-3 if not is_coarse else added > 1e-5
