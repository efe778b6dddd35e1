"""Makes a process compile all that is compiled at first use."""

from itertools import product

import numpy as np
from scipy.sparse import csr_array

from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.maps import made
from app.core.maps.terms import Dtype, Form
from app.core.spec import MapSpec

_GAUSSIAN = '{"kind": "gaussian", "length_scale": 1}'
_FOURIER = f'{{"input_dim": 1, "s": 1, "kernel": {_GAUSSIAN}, "sampler": {{"kind": "monte_carlo"}}}}'
_HASHING = '{"input_dim": 1, "s": 1, "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}'
# Maps of so many coordinates hash without tables.
_DRAWN_DIM = 1 << 31


def warm_up() -> None:
    """Transform a row, dense and sparse, in every form and dtype, hash one in each way, and measure one frequency."""
    rows = np.ones((1, 1))
    fourier = MapSpec.model_validate_json(_FOURIER)
    for form, dtype in product(Form, Dtype):
        found = made(fourier.model_copy(update={"form": form, "dtype": dtype, "normalize": True}))
        found.transform(rows.astype(dtype))
        found.transform(csr_array(rows.astype(dtype)))
    hashing = MapSpec.model_validate_json(_HASHING)
    tables, drawn = (made(hashing.model_copy(update={"input_dim": d})) for d in (1, _DRAWN_DIM))
    tables.codes(rows)
    drawn.codes(csr_array(([1.0], [0], [0, 1]), shape=(1, _DRAWN_DIM)))
    for exact in (rows, csr_array(rows)):
        tables.exact_gram(exact, exact)
        tables.exact_pairs(exact, exact)
    tables.gram(rows, rows)
    discrepancy = BoxDiscrepancy(fourier.kernel, np.ones(1))
    discrepancy.normalized(rows)
    discrepancy.value_and_gradient(rows)


if __name__ == "__main__":
    warm_up()
