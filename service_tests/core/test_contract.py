"""What every registered kernel with every registered sampler must do, in every form and precision.

A new kind is covered as soon as it is registered; a new required field wants values in FIELDS.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.kernels.base import ShiftInvariantKernel
from app.core.maps import ConsistentSamplingMap, FeatureMap, FourierMap, family
from app.core.samplers.base import FrequencySampler
from app.core.spec import Dtype, Form, MapSpec
from service_tests.core.specs import KERNELS, POINTS, SAMPLERS, kernel, kind, sampler, spec

D, S = 4, 512

FIELDS: dict[str, list[Any]] = {
    "length_scale": [1.5, [0.75, 1.0, 2.0, 3.0]],
    "base": [{"kind": kind(model)} for model in POINTS],
}
"""Values of the fields that have no natural default; a kind is tried with each."""


def variants(model: type[Any]) -> list[dict[str, Any]]:
    """The kind with every combination of FIELDS that it has."""
    names = [name for name in FIELDS if name in model.model_fields]
    combinations = product(*(FIELDS[name] for name in names))
    return [{"kind": kind(model)} | dict(zip(names, values, strict=True)) for values in combinations]


def named(value: Any) -> str:
    """A short name for the test's own."""
    return "-".join(str(v["kind"] if isinstance(v, dict) else v) for v in value.values()).replace(" ", "")


def goes_together(its_kernel: dict[str, Any], its_sampler: dict[str, Any]) -> bool:
    """The rule: frequencies for frequencies, hashes for hashes, moments only where there are any."""
    with_frequencies = issubclass(model_of(KERNELS, its_kernel), ShiftInvariantKernel)
    if with_frequencies != issubclass(model_of(SAMPLERS, its_sampler), FrequencySampler):
        return False
    if its_sampler["kind"] == "moment_matching":
        return kernel(**its_kernel).frequency_deviations(D) is not None
    return True


def model_of(models: tuple[type[Any], ...], fields: dict[str, Any]) -> type[Any]:
    return next(model for model in models if kind(model) == fields["kind"])


ALL = [(k, s) for model in KERNELS for k in variants(model) for s in (v for m in SAMPLERS for v in variants(m))]
TOGETHER = [pair for pair in ALL if goes_together(*pair)]
APART = [pair for pair in ALL if not goes_together(*pair)]
FOURIER = [pair for pair in TOGETHER if issubclass(model_of(KERNELS, pair[0]), ShiftInvariantKernel)]
HASHING = [pair for pair in TOGETHER if pair not in FOURIER]

every_dtype = pytest.mark.parametrize("dtype", [dtype.value for dtype in Dtype])


def build(of: MapSpec) -> FeatureMap:
    made = family(of)
    return made(of, made.build(of).arrays)


def rows(n: int, seed: int, dtype: str) -> Any:
    """Rows with kernels between 0.05 and 0.95, for length scales about 1."""
    return np.random.default_rng(seed).normal(size=(n, D), scale=0.6).astype(dtype)


def test_no_kind_is_left_out() -> None:
    assert {pair[0]["kind"] for pair in TOGETHER} == {kind(model) for model in KERNELS}
    assert {pair[1]["kind"] for pair in TOGETHER} == {kind(model) for model in SAMPLERS}
    assert len({kind(model) for model in KERNELS}) == len(KERNELS)
    assert len({kind(model) for model in SAMPLERS}) == len(SAMPLERS)


@pytest.mark.parametrize(("its_kernel", "its_sampler"), APART, ids=named)
def test_a_combination_without_a_meaning_is_refused_at_the_sampler(
    its_kernel: dict[str, Any], its_sampler: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        spec(kernel=its_kernel, sampler=its_sampler)
    assert caught.value.pointer == "/sampler/kind"
    assert caught.value.detail.split()[-1] in {kind(model) for model in SAMPLERS} | {"works"}


@every_dtype
@pytest.mark.parametrize("normalize", [False, True], ids=["plain", "normalized"])
@pytest.mark.parametrize("form", [form.value for form in Form])
@pytest.mark.parametrize(("its_kernel", "its_sampler"), FOURIER, ids=named)
def test_fourier_features_approximate_their_kernel(
    its_kernel: dict[str, Any], its_sampler: dict[str, Any], form: str, normalize: bool, dtype: str
) -> None:
    of = spec(kernel=its_kernel, sampler=its_sampler, form=form, normalize=normalize, dtype=dtype, s=S)
    feature_map = build(of)
    assert isinstance(feature_map, FourierMap)
    x, y = rows(6, 1, dtype), rows(5, 2, dtype)
    features, others = feature_map.transform(x), feature_map.transform(y)

    assert features.shape == (6, feature_map.n_output)
    assert feature_map.n_output == feature_map.n_frequencies * (2 if form == "cos_sin" else 1)
    assert features.dtype == feature_map.feature_dtype == np.result_type(dtype, "c8" if form == "complex" else dtype)
    assert np.isfinite(features).all()
    if normalize:
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)

    gram, exact = feature_map.gram(x, y), feature_map.exact_gram(x, y)
    np.testing.assert_allclose(gram, features @ others.conj().T, rtol=0, atol=1e-5 if dtype == "float32" else 1e-13)
    # One standard error of Monte Carlo is at most √(1.5/512) = 0.054, of the phase form; no sampler is to be worse.
    assert np.abs(gram - exact).max() < 4 * np.sqrt(1.5 / S)
    assert np.abs(gram - exact).max() > 1e-6
    assert np.ptp(exact) > 0.2

    arrays = feature_map.arrays
    assert arrays["frequencies"].shape == (feature_map.n_frequencies, D)
    assert all(array.dtype == dtype for array in arrays.values())
    assert float(arrays["weights"].sum(dtype=np.float64)) == pytest.approx(1, abs=1e-6)
    assert sum(array.nbytes for array in arrays.values()) == feature_map.bytes <= FourierMap.frozen_bytes(of)


@every_dtype
@pytest.mark.parametrize(("its_kernel", "its_sampler"), HASHING, ids=named)
def test_codes_collide_as_often_as_their_kernel_says(
    its_kernel: dict[str, Any], its_sampler: dict[str, Any], dtype: str
) -> None:
    of = spec(kernel=its_kernel, sampler=its_sampler, dtype=dtype, s=S)
    sampling = build(of)
    assert isinstance(sampling, ConsistentSamplingMap)
    x, y = rows(6, 1, dtype), rows(5, 2, dtype)
    assert sampling.pairs(x).shape == (6, sampling.n_output, 2)
    exact = sampling.exact_gram(x, y)
    # One standard error is √(k(1 − k)/512); 30 values, all within 4.
    assert (np.abs(sampling.gram(x, y) - exact) < 4 * np.sqrt(exact * (1 - exact) / S) + 1e-12).all()
    np.testing.assert_allclose(sampling.exact_pairs(x[:5], y), np.diag(exact[:5]), rtol=1e-14)
    assert np.ptp(exact) > 0.2
    assert sampling.bytes == ConsistentSamplingMap.frozen_bytes(of)


@every_dtype
@pytest.mark.parametrize(("its_kernel", "its_sampler"), TOGETHER, ids=named)
def test_a_spec_names_one_map_and_another_seed_another(
    its_kernel: dict[str, Any], its_sampler: dict[str, Any], dtype: str
) -> None:
    of = spec(kernel=its_kernel, sampler=its_sampler, dtype=dtype)
    read_back = MapSpec.model_validate_json(of.canonical())
    assert read_back.canonical() == of.canonical()
    first, again, other = (build(made) for made in (of, read_back, of.model_copy(update={"seed": 8})))
    for name, array in first.arrays.items():
        assert array.tobytes() == again.arrays[name].tobytes()
        assert array.shape == other.arrays[name].shape
        if name != "weights":
            assert (array != other.arrays[name]).any()


@pytest.mark.parametrize(("its_kernel", "its_sampler"), TOGETHER, ids=named)
def test_a_map_opened_from_its_arrays_is_the_map(its_kernel: dict[str, Any], its_sampler: dict[str, Any]) -> None:
    made = build(spec(kernel=its_kernel, sampler=its_sampler))
    opened = family(made.spec)(made.spec, {name: array.copy() for name, array in made.arrays.items()})
    x, y = rows(6, 1, "float32"), rows(5, 2, "float32")
    assert (opened.gram(x, y) == made.gram(x, y)).all()


@pytest.mark.parametrize("its_kernel", [k for model in KERNELS for k in variants(model)], ids=named)
def test_an_exact_kernel_is_symmetric_positive_and_one_on_the_diagonal(its_kernel: dict[str, Any]) -> None:
    x = rows(12, 1, "float64")
    gram = kernel(**its_kernel).gram(x, x)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-13)
    np.testing.assert_allclose(np.diag(gram), 1, rtol=1e-15)
    assert np.linalg.eigvalsh(gram).min() > 0
    assert (gram[np.triu_indices(12, 1)] < 1).all()


@pytest.mark.parametrize("model", [*KERNELS, *SAMPLERS], ids=kind)
def test_a_kind_says_what_it_is_and_what_its_fields_are(model: type[Any]) -> None:
    schema = model.model_json_schema()
    assert len(schema["description"]) > 20
    assert schema["additionalProperties"] is False
    made = kernel if model in KERNELS else sampler
    assert made(**variants(model)[0]).kind == kind(model)
