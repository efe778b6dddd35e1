"""Signed codes of Fourier maps: what they are, and for which laws and samplers they tell the kernel."""

import hashlib
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from app.core.errors import InvalidInput
from app.core.hashing.encodings import CodeOptions, Encoding
from app.core.hashing.signed_codes import arcs, signed_encoder
from app.core.maps import FeatureMap, FourierMap, Gives
from service_tests.cases import each
from service_tests.core.specs import fourier

SEEDS, S = 40, 128
STRUCTURED = {"sampler": {"kind": "structured_orthogonal"}, "input_dim": 40}
MAPS: list[dict[str, Any]] = [
    {},
    {"dtype": "float64", "form": "phase"},
    {"s": 13, "form": "complex"},
    {"kernel": {"kind": "correlation_rbf", "gamma": 2.0}},
    {"kernel": {"kind": "laplacian", "length_scale": [1.0, 2.0, 0.5, 3.0]}, "s": 1500, "dtype": "float64"},
    STRUCTURED,
    STRUCTURED | {"dtype": "float64", "s": 100},
]
# Of 400 rows on the first of these maps, and on a structured one. Should one of them change, every code that a client
# keeps of a map is worth nothing.
DIGESTS = (
    "0e185895eac50b78f1ae7f465f5b5cec672e6de592d61d70b780859e052ddc41",
    "1b9cac0f4a9c6256222cd61cde7516153fec41a34574fae81a6c495db229cfc2",
)


def bits(found: FeatureMap, x: Any) -> Any:
    return np.unpackbits(found.codes(x), axis=1, count=found.n_frequencies, bitorder="little")


def some_rows(d: int, n: int = 300, dtype: str = "float32") -> Any:
    return np.random.default_rng(d).normal(size=(n, d)).astype(dtype)


@each("members", MAPS)
def test_bits_are_the_signs_of_a_cosine_and_a_threshold(members: dict[str, Any]) -> None:
    found = fourier(**members)
    x = some_rows(found.spec.input_dim, dtype=found.spec.dtype.value)
    compared = np.asarray(found.prepare_rows(x, "/vectors"), np.float64)
    frequencies = np.asarray(found.arrays["frequencies"], np.float64)
    of = arcs(found.spec.seed, found.n_frequencies)
    offsets, thresholds = 2 * np.pi * of.offsets, -np.cos(2 * np.pi * of.half_widths)
    sums = np.cos(compared @ frequencies.T + offsets) + thresholds
    clear = np.abs(sums) > 1e-4  # where rounding of phases decides nothing
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(bits(found, x)[clear], (sums > 0)[clear])


@each("members", MAPS)
def test_bits_hang_on_no_other_row_and_on_no_thread(members: dict[str, Any]) -> None:
    found = fourier(**members)
    x = some_rows(found.spec.input_dim, 500)
    whole = found.codes(x)
    assert whole.shape == (500, -(-found.n_frequencies // 8))
    threads = FourierMap(found.spec, dict(found.arrays), threads=3) if "signs" not in found.arrays else found
    np.testing.assert_array_equal(threads.codes(x), whole)
    np.testing.assert_array_equal(np.concatenate([found.codes(x[i : i + 1]) for i in range(0, 500, 50)]), whole[::50])
    np.testing.assert_array_equal(found.codes(x[::-1]), whole[::-1])
    of_sparse = np.where(x > 0.5, x, 0).astype(x.dtype)
    if found.spec.kernel.kind != "correlation_rbf":
        np.testing.assert_array_equal(found.codes(sparse.csr_array(of_sparse)), found.codes(of_sparse))
    assert found.codes(x[:0]).shape == (0, whole.shape[1])


def test_bits_stay_what_they_are() -> None:
    x = (np.arange(1600).reshape(400, 4) % 37 - 18).astype(np.float32) / 8
    wide = (np.arange(16_000).reshape(400, 40) % 37 - 18).astype(np.float32) / 64
    found = fourier().codes(x), fourier(**STRUCTURED).codes(wide)
    assert tuple(hashlib.sha256(codes.tobytes()).hexdigest() for codes in found) == DIGESTS


@each(
    ("sampler", "more"),
    [
        ({"kind": "dense_grid", "points_per_dim": 3}, {"s": None}),
        ({"kind": "sparse_grid", "level": 2}, {"s": None}),
        ({"kind": "polynomially_exact", "degree": 2}, {"s": None}),
        ({"kind": "weighted", "box": 2.0}, {}),
        ({"kind": "uploaded", "frequencies": [[0.1] * 4, [0.2] * 4], "weights": [0.5, 0.4]}, {"s": None}),
        ({"kind": "uploaded", "frequencies": [[0.1] * 4, [0.2] * 4], "weights": [-0.5, -0.5]}, {"s": None}),
    ],
)
def test_maps_with_weights_of_their_own_have_no_codes_and_say_why(sampler: Any, more: Any) -> None:
    found = fourier(sampler=sampler, **more)
    assert Gives.codes not in found.capabilities(found.spec)
    with pytest.raises(InvalidInput, match=f"sampler {sampler['kind']}, whose frequencies have weights of their own"):
        found.codes(some_rows(4))


@each(
    ("members", "reason"),
    [
        ({}, None),
        ({"kernel": {"kind": "matern", "nu": 1.5, "length_scale": 1.0}, "sampler": {"kind": "sobol"}}, None),
        ({"kernel": {"kind": "cauchy", "length_scale": 1.0}}, "laplacian, matern or correlation_rbf"),
        ({"kernel": {"kind": "rational_quadratic", "alpha": 1.0, "length_scale": 1.0}}, "gaussian, laplacian"),
        ({"sampler": {"kind": "uploaded", "frequencies": [[0.1] * 4]}, "s": None}, "may be of any law"),
        ({"sampler": {"kind": "subsampled_grid", "points_per_dim": 5}}, "coordinates of a few values"),
        ({"sampler": {"kind": "global_adaptive", "box": 1.0, "iterations": 2}, "s": 8}, "are learned"),
        ({"sampler": {"kind": "structured_orthogonal"}, "input_dim": 32}, "few directions in 32 columns"),
        ({"sampler": {"kind": "structured_orthogonal"}, "input_dim": 257}, None),
    ],
)
def test_there_is_an_estimate_where_a_law_ties_codes_to_the_kernel(members: Any, reason: str | None) -> None:
    found = fourier(**members)
    x = some_rows(found.spec.input_dim, 5)
    told = found.similarity(x, x[::-1].copy(), found.usual_encoders[0], None)
    codes = found.similarity_of_codes(found.codes(x), found.codes(x[::-1]), found.usual_encoders[0], None)
    if reason is None:
        assert not found.similarity_warnings(found.usual_encoders[0])
        assert [*told] == ["estimate", "standard_error", "agreement", "exact", "bias", "interval"]
        assert [*codes] == ["estimate", "standard_error", "agreement", "bias", "interval"]
    else:
        (said,) = found.similarity_warnings(found.usual_encoders[0])
        assert reason in said
        assert said.isascii()
        assert ([*told], [*codes]) == (["agreement", "exact"], ["agreement"])
    np.testing.assert_array_equal(told["agreement"], (bits(found, x) == bits(found, x[::-1])).mean(axis=1))
    np.testing.assert_allclose(told["exact"], np.diag(found.exact_gram(x, x[::-1].copy())))


@each(
    ("members", "doubts"),
    [
        ({}, (None, None)),
        ({"sampler": {"kind": "antithetic"}}, ("92 to 95 times in 100", None)),
        ({"sampler": {"kind": "moment_matching", "base": {"kind": "antithetic"}}}, ("92 to 95", "not independent")),
        (
            {"sampler": {"kind": "moment_matching"}, "kernel": {"kind": "matern", "nu": 1.5, "length_scale": 1.0}},
            ("biases this kernel", "not independent"),
        ),
        ({"sampler": {"kind": "sobol"}}, (None, "not independent")),
        ({"sampler": {"kind": "moment_matching", "base": {"kind": "halton"}}}, (None, "not independent")),
        ({"sampler": {"kind": "sobol", "scramble": False}}, ("without a seed", "not independent")),
        ({"sampler": {"kind": "digital_net", "scramble": False}}, ("without a seed", "not independent")),
        ({"sampler": {"kind": "halton", "scramble": "none"}}, ("without a seed", "not independent")),
        ({"sampler": {"kind": "lattice", "shift": False}}, ("without a seed", "not independent")),
        (
            {"sampler": {"kind": "moment_matching", "base": {"kind": "sobol", "scramble": False}}},
            ("without a seed", "not independent"),
        ),
        ({"sampler": {"kind": "structured_orthogonal"}, "input_dim": 33}, ("up to 0.035 within 3", "not independent")),
        ({"sampler": {"kind": "structured_orthogonal"}, "input_dim": 256}, ("up to 0.007", "not independent")),
    ],
)
def test_what_an_interval_leaves_out_is_said(members: Any, doubts: tuple[str | None, str | None]) -> None:
    found = fourier(**members)
    for encoding, wanted in ((Encoding.packed, doubts[:1]), (Encoding.fingerprint, doubts)):
        said = found.similarity_warnings(signed_encoder(CodeOptions(encoding), found.n_frequencies))
        expected = [one for one in wanted if one is not None]
        assert len(said) == len(expected)
        assert all(one in told and told.isascii() for one, told in zip(expected, said, strict=True))
