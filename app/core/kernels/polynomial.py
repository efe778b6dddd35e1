"""The polynomial kernel."""

from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from scipy import sparse

from app.core.arrays import Floats, Matrix, Rows, count_entries, dense, in_own_columns, largest, of_columns, row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, Positive
from app.core.panels import Panels

# Entries raised to the power, or made dense, at a time.
_ENTRIES_PER_BLOCK = 1 << 16
# Memory of an entry of sparse rows while they are made ready.
_BYTES_PER_STORED = 40
# Cost of one multiplication of sparse rows in multiplications of a dense product, if all rows have the same columns.
_OPERATIONS_PER_STORED = 80


class Polynomial(AnyKernel):
    """(γ x·y + coef0)^degree: its features are all products of up to `degree` entries; the entries for degree 1.

    Choose when:
        Use it with degree 2 or 3 if products of a few entries separate the classes, as for pixels and words. Do not use
        it for rows of very different norms without scaling them first: a row ten times as long has 1,000 times the
        kernel at degree 3. It has no frequencies; use landmarks for features: degree 2 in d dimensions needs at most (d
        + 1)(d + 2)/2 of them.
    """

    source = "Schölkopf and Smola (2002), Learning with kernels, section 2.1, (2.16); scikit-learn's polynomial_kernel"

    served_by = "landmarks"

    kind: Literal["polynomial"]
    degree: Annotated[int, Field(ge=1, le=1000)]
    """Power, a whole number."""
    gamma: Positive | None = None
    """γ, factor of the inner products; 1/input_dim if not given."""
    coef0: Annotated[float, Field(ge=0)] = 1.0
    """Constant added to γ x·y; if 0, features are products of exactly `degree` entries."""

    @property
    def compares_sparse(self) -> bool:
        """Whether sparse rows are compared as they are: always."""
        return True

    def compare_with(self, y: Rows) -> Callable[[Rows], Matrix]:
        """Return a function that computes the kernel of some rows x with y, which stay sparse if they are sparse."""
        multiply = _multiply_dense(y) if isinstance(y, np.ndarray) else _multiply_sparse(y)
        return lambda x: self._powers(multiply(x), x.shape[1])

    def pairs(self, x: Rows, y: Rows) -> Matrix:
        """Compute the exact kernel of row i of x with row i of y, (n,); errors as in `exact`."""
        if sparse.issparse(x):
            products = np.asarray(x.astype(np.float64).multiply(y).sum(axis=1), np.float64).reshape(-1)
        elif sparse.issparse(y):
            return self.pairs(y, x)
        else:
            products = np.einsum("ij,ij->i", dense(x), dense(y))
        return self._powers(products[:, None], x.shape[1])[:, 0]

    def comparison_operations(self, x: Rows, y: Rows) -> int:
        """Return the cost of one multiplication, dense or sparse, per entry of x and row of y, and of the powers."""
        both_sparse = sparse.issparse(x) and sparse.issparse(y)
        of_x = _OPERATIONS_PER_STORED * count_entries(x) if both_sparse else x.shape[0] * x.shape[1]
        return int(y.shape[0] * (of_x + x.shape[0] * 2 * self.degree.bit_length()))

    def exact_bytes(self, x: Rows, y: Rows) -> int:
        """Return the memory for the entries of both, sparse or dense, while they are made ready."""
        if sparse.issparse(x) and sparse.issparse(y):
            return _BYTES_PER_STORED * (count_entries(x) + count_entries(y))
        return super().exact_bytes(x, y)

    def _powers(self, products: Matrix, input_dim: int) -> Matrix:
        """Compute (γ·products + coef0)^degree in place by squaring, in blocks that stay in the cache."""
        with np.errstate(over="ignore", invalid="ignore"):  # raises below
            products *= 1 / input_dim if self.gamma is None else self.gamma
            products += self.coef0
            for block in row_blocks(len(products), _ENTRIES_PER_BLOCK // max(1, products.shape[1])):
                power = products[block]
                base = power.copy()
                for bit in f"{self.degree:b}"[1:]:
                    power *= power
                    if bit == "1":
                        power *= base
        if not np.isfinite(largest(products)):
            raise InvalidInput(
                f"kernel values of degree {self.degree} leave float64: take smaller rows, gamma or degree"
            )
        return products


def _multiply_dense(y: Floats) -> Callable[[Rows], Matrix]:
    """Return a function that computes x·yᵀ of dense rows, (n, m)."""
    panels = Panels(dense(y), keeps_zeros=True)

    def multiply(x: Rows) -> Matrix:
        products = np.empty((x.shape[0], y.shape[0]))
        panels.multiplier(dense(x))(slice(0, y.shape[0]), products)
        return products

    return multiply


def _multiply_sparse(y: sparse.csr_array) -> Callable[[Rows], Matrix]:
    """Return a function that computes x·yᵀ of sparse rows, (n, m), in blocks of rows."""
    columns, of_y = in_own_columns(y)
    by_column = of_y.T.tocsr()

    def multiply(x: Rows) -> Matrix:
        products, of_x = np.empty((x.shape[0], y.shape[0])), of_columns(sparse.csr_array(x), columns)
        for block in row_blocks(len(products), _ENTRIES_PER_BLOCK // max(1, y.shape[0])):
            products[block] = (of_x[block] @ by_column).toarray()
        return products

    return multiply
