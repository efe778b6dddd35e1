"""Codes of rows, as the service answers them, or as sparse rows of ones."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from bochner_client.transformers import HashMap
from service_tests.cases import each
from service_tests.checks import array, post_npy
from service_tests.running import Running

ROWS = np.abs(np.random.default_rng(4).standard_normal((3000, 6)).astype(np.float32))


def test_codes_one_hot_are_sparse_rows_that_linear_learners_take(running: Running) -> None:
    rows = ROWS.copy()
    rows[5] = 0
    one_hot = HashMap(s=32, bits=4, url=running.url).fit(rows)
    found: Any = one_hot.transform(rows)
    assert isinstance(found, sparse.csr_array)
    assert (found.shape, found.dtype) == ((3000, 32 * 16), np.dtype(np.float32))
    assert {found.indices.dtype, found.indptr.dtype} == {np.dtype(np.int32)}
    with running.client() as http:
        codes = array(post_npy(http, f"{one_hot.name_}/codes?encoding=one_hot&bits=4&on_zero=mark", rows))
    expected = np.zeros(found.shape, np.float32)
    np.put_along_axis(expected, np.where(codes < 0, 0, codes), 1, axis=1)
    expected[5] = 0
    np.testing.assert_array_equal(found.toarray(), expected)


@each(
    ("encoding", "bits", "dtype", "columns"),
    [
        ("zero_bit", None, np.int32, 32),
        ("packed", 4, np.uint8, 16),
        ("fingerprint", 64, np.uint64, 32),
        ("pairs", None, np.int64, 64),
    ],
)
def test_codes_come_in_every_encoding(
    running: Running, encoding: Any, bits: int | None, dtype: type, columns: int
) -> None:
    hashes = HashMap(s=32, bits=bits, encoding=encoding, url=running.url).fit(ROWS)
    found = hashes.transform(ROWS)
    assert found.dtype == dtype
    assert found.shape == (3000, columns) == (3000, len(hashes.get_feature_names_out()))
    query = f"encoding={encoding}" + ("" if bits is None else f"&bits={bits}")
    with running.client() as http:
        answered = array(post_npy(http, f"{hashes.name_}/codes?{query}", ROWS))
    np.testing.assert_array_equal(found, answered.reshape(3000, -1))
    out = np.zeros_like(answered)
    hashes.transform(ROWS, out=out)
    np.testing.assert_array_equal(out, answered)


def test_kernels_with_frequencies_have_signed_codes(running: Running) -> None:
    hashes = HashMap(s=96, kernel="gaussian", length_scale=2.0, sampler="orthogonal", url=running.url).fit(ROWS)
    found = hashes.transform(ROWS)
    with running.client() as http:
        answered = array(post_npy(http, f"{hashes.name_}/codes?encoding=packed", ROWS))
    np.testing.assert_array_equal(found, answered)
    assert found.dtype == answered.dtype
    with pytest.raises(ValueError, match=r"(they are|it is) for kernel"):
        hashes.set_params(p=2.0).fit(ROWS)
