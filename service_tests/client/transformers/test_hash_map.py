"""Codes of rows, as the service answers them, or as sparse rows of ones."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from bochner_client.transformers import HashMap
from service_tests.checks import array, post_npy
from service_tests.running import Running

ROWS = np.abs(np.random.default_rng(4).standard_normal((3000, 6)).astype(np.float32))


def test_a_refusal_says_in_which_rows(running: Running) -> None:
    rows = ROWS.copy()
    rows[2345] = 0
    strict = HashMap(s=8, on_zero="refuse", encoding="zero_bit", url=running.url).fit(rows[:10])
    with pytest.raises(ValueError, match="all zero") as caught:
        strict.transform(rows)
    assert caught.value.__notes__ == ["in rows 0 to 2999"]


def test_codes_one_hot_are_sparse_rows_that_linear_learners_take(running: Running) -> None:
    rows = ROWS.copy()
    rows[5] = 0
    one_hot = HashMap(s=32, bits=4, url=running.url).fit(rows)
    found: Any = one_hot.transform(rows)
    assert isinstance(found, sparse.csr_array)
    assert found.shape == (3000, 32 * 16)
    assert found.dtype == np.float32
    assert {found.indices.dtype, found.indptr.dtype} == {np.dtype(np.int32)}
    assert len(one_hot.get_feature_names_out()) == 32 * 16
    with running.client() as http:
        codes = array(post_npy(http, f"{one_hot.name_}/codes?encoding=one_hot&bits=4&on_zero=mark", rows))
    expected = np.zeros(found.shape, np.float32)
    np.put_along_axis(expected, np.where(codes < 0, 0, codes), 1, axis=1)
    expected[5] = 0
    np.testing.assert_array_equal(found.toarray(), expected)
    with pytest.raises(ValueError, match="sparse, and written into no array"):
        one_hot.transform(rows, out=np.empty((3000, 32), np.int32))


@pytest.mark.parametrize(
    ("encoding", "bits", "dtype", "columns"),
    [
        ("zero_bit", None, np.int32, 32),
        ("b_bit", 4, np.uint8, 32),
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


@pytest.mark.parametrize(
    ("options", "query", "columns"),
    [
        ({}, "", 12),
        ({"length_scale": 2.0, "sampler": "orthogonal"}, "encoding=packed", 12),
        (
            {"encoding": "fingerprint", "bits": 32, "rows_per_band": 8},
            "encoding=fingerprint&bits=32&rows_per_band=8",
            12,
        ),
        ({"encoding": "fingerprint"}, "encoding=fingerprint", 6),
    ],
)
def test_kernels_with_frequencies_have_signed_codes(
    running: Running, options: dict[str, Any], query: str, columns: int
) -> None:
    hashes = HashMap(s=96, kernel="gaussian", url=running.url, **options).fit(ROWS)
    found = hashes.transform(ROWS)
    assert found.shape == (3000, columns) == (3000, len(hashes.get_feature_names_out()))
    with running.client() as http:
        answered = array(post_npy(http, f"{hashes.name_}/codes?{query}", ROWS))
    np.testing.assert_array_equal(found, answered)
    assert found.dtype == answered.dtype
