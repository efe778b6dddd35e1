"""Memory that Gram errors take, beside what is reckoned for them."""

import tracemalloc

import pytest

from app.core.diagnostics.error_matrix import Estimator
from app.core.diagnostics.gram import Gram
from service_tests.cases import with_nightly
from service_tests.core.combinations import rows
from service_tests.core.diagnostics.measure import gram_errors
from service_tests.core.specs import fourier


@pytest.mark.parametrize(("n", "d"), with_nightly([(200, 1500)], [(1500, 4)]))
@pytest.mark.parametrize("form", ["cos_sin", "complex"])
def test_memory_stays_within_what_is_reckoned(form: str, n: int, d: int) -> None:
    made, x = fourier(input_dim=d, form=form), rows(n, 5, d, dtype="float32")
    tracemalloc.start()
    gram_errors(made, x, list(Estimator), seeds=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.4 < peak / Gram(estimators=tuple(Estimator)).memory_bytes(made, {"vectors": x}) < 1.3
