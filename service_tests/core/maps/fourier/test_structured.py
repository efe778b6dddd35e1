"""The structured projection, and maps on it, against an explicit product with the frequencies it stands for."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core.errors import InvalidInput
from app.core.maps import FourierMap, opened
from app.core.maps.fourier import inner_products, phases, structured
from app.core.maps.fourier.structured import StructuredProjection
from app.core.maps.terms import FrozenArray
from service_tests.cases import covered, each
from service_tests.core.specs import spec

D, S = 20, 150
KERNELS: dict[str, dict[str, Any]] = {
    "gaussian": {"kind": "gaussian", "length_scale": np.linspace(1, 4, D).tolist()},
    "matern": {"kind": "matern", "nu": 1.5, "length_scale": np.linspace(1, 4, D).tolist()},
    "rational_quadratic": {"kind": "rational_quadratic", "alpha": 0.8, "length_scale": 2.0},
    "correlation_rbf": {"kind": "correlation_rbf", "gamma": 2.0},
}
OUTPUTS = [
    (name, form, normalize, dtype)
    for name in KERNELS
    for form in ("complex", "cos_sin", "phase")
    for normalize in (False, True)
    for dtype in ("float32", "float64")
]
every_output = pytest.mark.parametrize(("name", "form", "normalize", "dtype"), covered(OUTPUTS))
every_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


def made(threads: int = 1, name: str = "gaussian", **members: Any) -> FourierMap:
    fields = {"input_dim": D, "s": S, "kernel": KERNELS[name], "sampler": {"kind": "structured_orthogonal"}} | members
    of = spec(**fields)
    found = opened(of, FourierMap.build(of).arrays, threads)
    assert isinstance(found, FourierMap)
    return found


def rows(n: int, d: int = D, dtype: str = "float64") -> Any:
    return np.random.default_rng(n).normal(size=(n, d)).astype(dtype)


def expected(feature_map: FourierMap, x: Any) -> Any:
    """Features by their definition, from the matrix that /frequencies gives, in float64."""
    frequencies, s = feature_map.arrays["frequencies"].astype(np.float64), feature_map.n_frequencies
    x = x.astype(np.float64)
    if feature_map.spec.kernel.kind == "correlation_rbf":
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    phases = x @ frequencies.T
    match feature_map.spec.form:
        case "complex":
            features = np.exp(-1j * phases)
        case "cos_sin":
            features = np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
        case _:
            features = np.sqrt(2) * np.cos(phases + feature_map.arrays["offsets"])
    norms = np.linalg.norm(features, axis=1, keepdims=True) if feature_map.spec.normalize else np.sqrt(s)
    return features / norms


@every_output
def test_features_are_those_of_the_explicit_product(name: str, form: str, normalize: bool, dtype: str) -> None:
    feature_map, x = made(name=name, form=form, normalize=normalize, dtype=dtype), rows(45, dtype=dtype)
    found = feature_map.transform(x)
    close = 1e-5 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(found, expected(feature_map, x), rtol=0, atol=close)
    # The norms of sparse rows are summed in another order.
    from_sparse = feature_map.transform(csr_array(x))
    np.testing.assert_allclose(from_sparse, found, rtol=0, atol=close if name == "correlation_rbf" else 0)
    y = rows(7, dtype=dtype)
    product = expected(feature_map, x) @ expected(feature_map, y).conj().T
    np.testing.assert_allclose(feature_map.gram(x, y), product, rtol=0, atol=20 * close)


@every_output
def test_a_row_has_the_same_bits_in_any_batch_on_any_threads(
    name: str, form: str, normalize: bool, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several slices, of one block and of parts of one.
    monkeypatch.setattr(structured, "_ENTRIES_PER_BLOCK", 32 * 33)
    monkeypatch.setattr(phases, "_FREQUENCIES_PER_BLOCK", 32)
    members: dict[str, Any] = {"name": name, "form": form, "normalize": normalize, "dtype": dtype}
    x = rows(101, dtype=dtype)
    whole = made(1, **members).transform(x)
    monkeypatch.setattr(phases, "_FREQUENCIES_PER_BLOCK", 8)
    monkeypatch.setattr(structured, "_MOST_FREQUENCIES", 8)
    for threads in (1, 2, 3):
        feature_map = made(threads, **members)
        assert feature_map.transform(x).tobytes() == whole.tobytes()
        for first, last in ((0, 1), (32, 34), (3, 40), (100, 101)):
            assert feature_map.transform(x[first:last]).tobytes() == whole[first:last].tobytes()


@pytest.mark.parametrize("most", [8, 16, 32, 64])
def test_a_gram_block_summed_over_blocks_of_frequencies_is_the_same(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made(dtype="float64").gram(rows(9), rows(7))
    monkeypatch.setattr(inner_products, "_FREQUENCIES_PER_BLOCK", most)
    monkeypatch.setattr(phases, "_FREQUENCIES_PER_BLOCK", most)
    monkeypatch.setattr(structured, "_MOST_FREQUENCIES", most)
    np.testing.assert_allclose(made(dtype="float64").gram(rows(9), rows(7)), whole, rtol=0, atol=1e-14)


@every_dtype
def test_what_is_frozen_is_a_bit_for_a_sign_and_a_length_for_a_frequency(dtype: str) -> None:
    of = spec(input_dim=784, s=65_536, sampler={"kind": "structured_orthogonal"}, dtype=dtype, form="phase")
    frozen = FourierMap.frozen(of)
    lengths = FrozenArray((65_536,), np.dtype(dtype))
    assert frozen == {"signs": FrozenArray((64, 3, 128), np.dtype(np.uint8)), "radii": lengths, "offsets": lengths}
    built = FourierMap.build(of)
    assert {name: (array.shape, array.dtype) for name, array in built.arrays.items()} == frozen
    assert StructuredProjection.frozen(of, 65_536)["signs"].nbytes == 24_576
    found = opened(of, built.arrays)
    of_signed_codes = 2 * 8 * 65_536
    assert found.bytes < 6 * lengths.nbytes + of_signed_codes
    assert found.computed["frequencies"] == FrozenArray((65_536, 784), np.dtype(dtype))


@pytest.mark.gate
def test_a_million_frequencies_are_made_and_used() -> None:
    feature_map = made(input_dim=784, s=1 << 20, kernel={"kind": "gaussian", "length_scale": 28.0}, dtype="float32")
    x = rows(3, 784, "float32")
    gram = feature_map.gram(x, x)
    # One standard error of as many independent frequencies is at most .0007.
    assert np.abs(gram - feature_map.exact_gram(x, x)).max() < 0.003
    assert feature_map.bytes < 32 << 20


@every_dtype
@each("scale", [1e-30, 1.0, 100.0])
def test_no_phase_leaves_the_range_that_the_largest_norm_allows(dtype: str, scale: float) -> None:
    feature_map = made(kernel={"kind": "gaussian", "length_scale": scale}, dtype=dtype)
    frequencies = feature_map.arrays["frequencies"].astype(np.float64)
    with pytest.raises(InvalidInput, match="this map takes entries up to") as caught:
        feature_map.transform(np.full((1, D), np.finfo(dtype).max, dtype))
    allowed = float(caught.value.detail.rpartition(" ")[2]) * 0.99
    assert allowed * np.abs(frequencies).sum(axis=1).max() < np.finfo(dtype).max / 4
    for row in (np.full(D, allowed), np.where(np.arange(D) == 3, allowed, 0), np.sign(frequencies[0]) * allowed):
        assert np.isfinite(feature_map.transform(row[None].astype(dtype))).all()


def test_scales_that_make_infinite_or_no_frequencies_are_told() -> None:
    for members, word in (
        ({"kernel": {"kind": "gaussian", "length_scale": 1e-38}}, "length_scale is so small"),
        ({"kernel": {"kind": "correlation_rbf", "gamma": 1e80}}, "gamma is so large"),
        ({"kernel": {"kind": "matern", "nu": 0.01, "length_scale": 1.0}}, "nu is so small"),
    ):
        with pytest.raises(InvalidInput, match=word):
            made(**members)  # type: ignore[arg-type]
    of = spec(input_dim=D, sampler={"kind": "structured_orthogonal"}, kernel={"kind": "gaussian", "length_scale": 1e60})
    assert "every frequency is 0" in FourierMap.build(of).warnings[-1]


def test_few_directions_are_told_where_they_are_few() -> None:
    for d, warned in ((8, True), (32, True), (33, False)):
        of = spec(input_dim=d, sampler={"kind": "structured_orthogonal"})
        assert bool(FourierMap.build(of).warnings) == warned


def test_its_operations_grow_with_the_blocks_and_not_with_the_entries() -> None:
    x = rows(5)
    assert made().operations(x) == made().operations(csr_array(x)) == 5 * made().operations(x[:1])
    assert made(s=160).operations(x) == made().operations(x) == 5 * made(s=32).operations(x)
