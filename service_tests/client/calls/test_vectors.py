from typing import Any

import httpx
import numpy as np
import pytest
from scipy import sparse

from bochner_client import BochnerWarning, Client, InvalidInput, TooLarge
from service_tests.cases import each
from service_tests.checks import array, post_npy
from service_tests.client.conftest import Asked

ROWS = np.random.default_rng(5).normal(size=(7, 3)).astype(np.float32)
POSITIVE = np.abs(ROWS) + 0.1


def features(http: httpx.Client, name: str, rows: Any = ROWS) -> Any:
    return array(post_npy(http, f"{name}/transform", rows))


@each(
    "rows",
    [
        *(ROWS.tolist(), ROWS.astype(">f8"), np.asfortranarray(ROWS), np.repeat(ROWS, 2, axis=1)[:, ::2]),
        *(ROWS.astype(object), sparse.coo_matrix(ROWS)),
    ],
)
def test_rows_come_in_many_forms(client: Client, standing: dict[str, str], http: httpx.Client, rows: Any) -> None:
    assert np.array_equal(client.transform(standing["float64"], rows), features(http, standing["float64"]))


@each("form", ["phase", "complex", "float64"])
def test_features_come_in_the_dtype_that_is_asked_for(
    ask: Asked, standing: dict[str, str], http: httpx.Client, form: str
) -> None:
    wanted = features(http, standing[form])
    for dtype in (None, np.float16, np.float64) if form != "complex" else (None,):
        found = ask.transform(standing[form], ROWS, dtype=dtype)
        assert found.dtype == (dtype or wanted.dtype)
        assert np.array_equal(found, wanted.astype(found.dtype))


def test_features_are_written_where_they_are_wanted(ask: Asked, standing: dict[str, str], http: httpx.Client) -> None:
    wanted = features(http, standing["phase"])
    for dtype, order in ((np.float16, "C"), (np.float64, "C"), (np.float32, "F")):
        out = np.full((7, 16), np.nan, dtype, order=order)  # type: ignore[call-overload]
        assert ask.transform(standing["phase"], ROWS, out=out) is out
        assert np.array_equal(out, wanted.astype(dtype))
    beside = np.zeros((7, 40), np.float32)
    ask.transform(standing["phase"], ROWS, out=beside[:, 10:26])
    assert np.array_equal(beside[:, 10:26], wanted)
    assert not beside[:, :10].any()
    assert not beside[:, 26:].any()


def test_a_place_that_does_not_fit_is_refused(ask: Asked, standing: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"\(7, 5\).*\(7, 16\)"):
        ask.transform(standing["phase"], ROWS, out=np.empty((7, 5), np.float32))
    locked = np.empty((7, 16), np.float32)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        ask.transform(standing["phase"], ROWS, out=locked)
    with pytest.raises(TypeError, match="complex"):
        ask.transform(standing["complex"], ROWS, dtype=np.float32)


def test_what_the_service_refuses_is_told(ask: Asked, standing: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="5 entries"):
        ask.transform(standing["phase"], np.zeros((2, 5)))
    with pytest.raises(TooLarge) as refused:
        ask.transform(standing["phase"], np.zeros((200_000, 3)))
    assert (refused.value.limit, refused.value.value) == ("max_body_bytes", 2_000_000)
    assert refused.value.setting == "BOCHNER_MAX_BODY_BYTES"


def test_kernels_are_those_of_the_service(ask: Asked, standing: dict[str, str]) -> None:
    for x, y in ((ROWS, None), (sparse.csr_array(ROWS), ROWS[:2])):
        found = ask.kernel(standing["float64"], x, y, exact=True)
        distances = np.square(ROWS[:, None].astype("f8") - (ROWS if y is None else y)).sum(axis=2)
        assert np.allclose(found.exact, np.exp(-distances / 4.5), atol=1e-12)
        assert np.array_equal(ask.kernel(standing["float64"], x, y).approximate, found.approximate)
    of_bits = ask.transform(standing["float64"], ROWS > 0)
    assert np.allclose(ask.transform(standing["float64"], sparse.csr_array(ROWS > 0)), of_bits, atol=1e-12)
    hermitian = ask.kernel(standing["complex"], ROWS, exact=True)
    assert hermitian.approximate.dtype.kind == "c"
    assert hermitian.exact.dtype.kind == "f"


def test_what_is_doubtful_is_warned_of_where_the_client_was_called(
    client: Client, ask: Asked, standing: dict[str, str]
) -> None:
    coarse = np.array([[1e9, 0, 0], [1e9, 1, 0]])
    with pytest.warns(BochnerWarning, match="float32") as told:
        client.transform(standing["phase"], coarse)
    assert told[0].filename == __file__
    with pytest.warns(BochnerWarning, match="float32"):
        ask.kernel(standing["phase"], coarse)


def test_codes_come_in_each_encoding(ask: Asked, standing: dict[str, str], http: httpx.Client) -> None:
    for encoding, bits in (("zero_bit", None), ("pairs", None), ("packed", 4), ("fingerprint", 64)):
        found = ask.codes(standing["gmm"], POSITIVE, encoding, bits=bits)
        query = f"encoding={encoding}" + ("" if bits is None else f"&bits={bits}")
        assert np.array_equal(found, array(post_npy(http, f"{standing['gmm']}/codes?{query}", POSITIVE)))
    marked = ask.codes(standing["gmm"], np.zeros((1, 3)), bits_of="pair", encoding="b_bit", on_zero="mark")
    assert set(marked.ravel().tolist()) == {-1}
    out = np.empty((7, 16), np.int32)
    assert np.array_equal(ask.codes(standing["gmm"], POSITIVE, out=out), out)


def test_similarities_of_rows_and_of_their_codes_agree(ask: Asked, standing: dict[str, str]) -> None:
    x, y = POSITIVE[:3], POSITIVE[3:6]
    found = ask.similarity(standing["gmm"], x, y, gamma=1.0)
    assert set(found) > {"estimate", "standard_error", "exact", "rbf_exact"}
    assert found["exact"] == pytest.approx(np.minimum(x, y).sum(1) / np.maximum(x, y).sum(1), rel=1e-6)
    options = {"encoding": "packed", "bits": 4, "bits_of": "pair"}
    packed = [ask.codes(standing["gmm"], rows, **options) for rows in (x, y)]
    of_codes = ask.similarity(standing["gmm"], *packed, of="codes", **options)
    assert np.array_equal(of_codes["estimate"], ask.similarity(standing["gmm"], x, y, **options)["estimate"])
