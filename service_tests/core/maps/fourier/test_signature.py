"""Maps whose weights have both signs."""

from typing import Any

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.maps import FourierMap
from service_tests.cases import each
from service_tests.core.specs import fourier, spec

D = 4
FREQUENCIES = np.random.default_rng(1).normal(size=(30, D))
WEIGHTS = np.random.default_rng(2).normal(size=30)

signed_forms = pytest.mark.parametrize("form", ["complex", "cos_sin"])


def uploaded(weights: Any = WEIGHTS.tolist(), **fields: Any) -> dict[str, Any]:  # noqa: B008
    return {"kind": "uploaded", "frequencies": FREQUENCIES.tolist(), "weights": weights} | fields


def rows(n: int, seed: int, dtype: str = "float64") -> Any:
    return np.random.default_rng(seed).normal(size=(n, D)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@signed_forms
def test_features_have_the_root_of_the_absolute_weight_and_the_gram_block_its_sign(form: str, dtype: str) -> None:
    made = fourier(sampler=uploaded(), s=None, form=form, dtype=dtype)
    x, y, close = rows(6, 3, dtype), rows(5, 4, dtype), 1e-5 if dtype == "float32" else 1e-12
    roots, phases = np.sqrt(np.abs(WEIGHTS)), x @ FREQUENCIES.T
    if form == "complex":
        expected = roots * np.exp(-1j * phases)
    else:
        expected = np.hstack([roots * np.cos(phases), roots * np.sin(phases)])
    np.testing.assert_allclose(made.transform(x), expected, rtol=0, atol=close)

    gram = np.zeros((6, 5), complex)
    for i in range(6):
        for j in range(5):
            turns = FREQUENCIES @ (x[i].astype(np.float64) - y[j])
            gram[i, j] = (WEIGHTS * np.exp(-1j * turns)).sum()
    np.testing.assert_allclose(made.gram(x, y), gram if form == "complex" else gram.real, rtol=0, atol=10 * close)
    np.testing.assert_allclose(np.diag(made.gram(x, x)), WEIGHTS.sum(), rtol=0, atol=10 * close)
    signature = made.arrays["signature"]
    assert signature.dtype == np.int8
    assert (signature == np.sign(WEIGHTS)).all()
    features = made.transform(x), made.transform(y)
    joined = features[0] * np.tile(signature, features[0].shape[1] // 30) @ features[1].conj().T
    np.testing.assert_allclose(joined, made.gram(x, y), rtol=0, atol=10 * close)


@each(
    ("members", "pointer"),
    [
        ({"form": "phase"}, "/form"),
        ({"normalize": True}, "/normalize"),
        ({"normalize": True, "form": "complex"}, "/normalize"),
        ({"normalize": True, "form": "phase"}, "/normalize"),
    ],
)
@each("over", [uploaded(), {"kind": "sparse_grid", "level": 2}])
def test_phase_and_normalize_are_refused_and_forms_named_that_work(
    over: dict[str, Any], members: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        FourierMap.build(spec(sampler=over, s=None, **members))
    assert caught.value.pointer == pointer
    assert "cos_sin and complex" in caught.value.detail
    assert fourier(sampler=over, s=None).arrays["signature"].min() == -1
