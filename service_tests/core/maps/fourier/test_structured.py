"""The structured projection, and maps on it, against an explicit product with the frequencies it stands for."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from app.core import hadamard
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap, FourierMap, open_map
from app.core.maps.fourier import features, projections
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
    found = open_map(of, FourierMap.build(of).arrays, threads)
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
    monkeypatch.setattr(projections, "_ENTRIES_IN_TILES", 32 * 33)
    monkeypatch.setattr(features, "_FREQUENCIES_PER_BLOCK", 32)
    members: dict[str, Any] = {"name": name, "form": form, "normalize": normalize, "dtype": dtype}
    x = rows(101, dtype=dtype)
    whole = made(1, **members).transform(x)
    monkeypatch.setattr(features, "_FREQUENCIES_PER_BLOCK", 8)
    monkeypatch.setattr(projections, "_MOST_FREQUENCIES", 8)
    for threads in (1, 2, 3):
        feature_map = made(threads, **members)
        assert feature_map.transform(x).tobytes() == whole.tobytes()
        for first, last in ((0, 1), (32, 34), (3, 40), (100, 101)):
            assert feature_map.transform(x[first:last]).tobytes() == whole[first:last].tobytes()


def test_rows_are_rotated_once_for_features_and_as_often_as_counted_for_a_gram_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(features, "_FREQUENCIES_PER_BLOCK", 8)
    monkeypatch.setattr(features, "_FREQUENCIES_HELD", 8)
    monkeypatch.setattr(projections, "_MOST_FREQUENCIES", 8)
    feature_map, x, rotations = made(), rows(1), []

    def rotate(
        tiles: Any, kept: Any, block_kept: int, signs: Any, lengths: Any, first: int, last: int, out: Any
    ) -> int:
        rotations.append(first // 32 != block_kept)
        return hadamard.rotate(tiles, kept, block_kept, signs, lengths, first, last, out)

    monkeypatch.setattr(projections, "rotate", rotate)
    feature_map.transform(x)
    assert (sum(rotations), len(rotations)) == (5, 19)
    rotations.clear()
    feature_map.gram(x, x)
    assert (sum(rotations), len(rotations)) == (2 * 19, 2 * 19)
    again = feature_map.gram_operations(x, x) - FeatureMap.gram_operations(feature_map, x, x) - 19 * 3_000_000
    assert again == 2 * feature_map.operations(x) * (32 / 8 - 1)


@every_dtype
@each("scale", [1e-30, 1.0, 100.0])
def test_no_phase_leaves_the_range_that_the_largest_norm_allows(dtype: str, scale: float) -> None:
    feature_map = made(kernel={"kind": "gaussian", "length_scale": scale}, dtype=dtype)
    frequencies = feature_map.arrays["frequencies"].astype(np.float64)
    with pytest.raises(InvalidInput, match="expected entries up to") as caught:
        feature_map.transform(np.full((1, D), np.finfo(dtype).max, dtype))
    allowed = float(caught.value.detail.rpartition(" ")[2]) * 0.99
    assert allowed * np.abs(frequencies).sum(axis=1).max() < np.finfo(dtype).max / 4
    for row in (np.full(D, allowed), np.where(np.arange(D) == 3, allowed, 0), np.sign(frequencies[0]) * allowed):
        assert np.isfinite(feature_map.transform(row[None].astype(dtype))).all()
