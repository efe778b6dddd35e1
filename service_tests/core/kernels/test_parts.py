"""Exact kernel blocks of many rows, computed in parts."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse

from app.core.kernels.gmm import GeneralizedMinMax
from app.core.maps import make_map
from service_tests.cases import each
from service_tests.core.combinations import D, Fields, named, rows, variants
from service_tests.core.specs import KERNELS, gmm_spec, kernel


@pytest.mark.parametrize("fields", [fields for model in KERNELS for fields in variants(model)], ids=named)
@each("of_x", [np.asarray, sparse.csr_array])
@each("of_y", [np.asarray, sparse.csr_array])
def test_parts_are_the_whole_and_rows_are_made_ready_once(fields: Fields, of_x: Any, of_y: Any) -> None:
    made, x, y = kernel(**fields), of_x(np.abs(rows(50, 1, D))), of_y(np.abs(rows(9000, 2, D)))
    whole, pauses = made.exact(x, y), list[None]()
    with patch.object(type(made), "compare_with", autospec=True, side_effect=type(made).compare_with) as ready:
        found = made.exact_in_parts(x, y, 2, lambda: pauses.append(None))
    np.testing.assert_array_equal(found, whole)
    assert ready.call_count == 1
    assert pauses


def test_a_map_that_hashes_makes_rows_ready_once() -> None:
    made, y = make_map(gmm_spec(input_dim=D)), sparse.csr_array(np.abs(rows(9000, 2, D)))
    ready = patch.object(GeneralizedMinMax, "compare_with", autospec=True, side_effect=GeneralizedMinMax.compare_with)
    with ready as called:
        made.exact_gram(sparse.csr_array(np.abs(rows(50, 1, D))), y)
    assert called.call_count == 1
