"""What every registered kernel with every registered sampler must do, in every form and precision.

A new kind is covered as soon as it is registered and has its fields in `combinations.FIELDS`.
"""

import re
from typing import Any, NamedTuple

import numpy as np
import pytest

from app.core.errors import InvalidInput
from app.core.maps import ConsistentSamplingMap, FeatureMap, FourierMap, family_of, open_map
from app.core.maps.terms import Dtype, Form
from app.core.samplers.base import FrequencySampler
from app.core.spec import MapSpec
from service_tests.cases import covering, each
from service_tests.core.combinations import (
    COUNTED,
    FIELDS,
    LAWS,
    OTHER_FAMILIES,
    RULES,
    Fields,
    S,
    dimensions,
    each_with_each,
    goes_together,
    is_random,
    pairs,
    rows,
    size_of,
    variants,
    weight_sum,
    with_frequencies,
    with_rows,
)
from service_tests.core.specs import KERNELS, SAMPLERS, kernel, kind, sampler, spec

TOGETHER = each_with_each([pair for pair in pairs() if goes_together(*pair)])
APART = [pair for pair in pairs() if not goes_together(*pair)]
FOURIER, HASHING = (
    [pair for pair in TOGETHER if family_of(sampler(**pair[1])) is of] for of in (FourierMap, ConsistentSamplingMap)
)


class Output(NamedTuple):
    """What a spec says of features, beside the kernel and the sampler."""

    form: str
    normalize: bool
    dtype: str

    def __str__(self) -> str:
        return f"{self.form}-{'normalized' if self.normalize else 'plain'}-{self.dtype}"


OUTPUTS = [Output(form.value, normal, dtype.value) for form in Form for normal in (False, True) for dtype in Dtype]
WITH_OUTPUTS = [(*pair, output) for pair in FOURIER for output in OUTPUTS]
# Every kernel with every sampler, and each of them with each form, normalized or not, in each precision.
COVERED = covering([(k["kind"], s["kind"], *output) for k, s, output in WITH_OUTPUTS])


def build(of: MapSpec) -> FeatureMap:
    return open_map(of, family_of(of.sampler).build(of, with_rows(of.input_dim, its_kernel=of.kernel.kind)).arrays, 1)


def test_no_kind_is_left_out() -> None:
    kinds = [kind(model) for model in (*KERNELS, *SAMPLERS)]
    assert len(set(kinds)) == len(kinds)
    missing = set(kinds) - set(FIELDS)
    assert not missing, f"give {missing} values of their fields in combinations.FIELDS"
    without_kernels = {kind(model) for model in SAMPLERS if not issubclass(model, FrequencySampler)} - set(
        OTHER_FAMILIES
    )
    assert not without_kernels, f"say in combinations.OTHER_FAMILIES which kernels go with {without_kernels}"
    without_law = with_frequencies(KERNELS) - set(LAWS)
    assert not without_law, f"give {without_law} the law of a frequency's coordinate in combinations.LAWS"
    assert {pair[0]["kind"] for pair in TOGETHER} == {kind(model) for model in KERNELS}
    assert {pair[1]["kind"] for pair in TOGETHER} == {kind(model) for model in SAMPLERS}


@each("refused", sorted({its_sampler["kind"] for _, its_sampler in APART}))
def test_a_combination_without_a_meaning_is_refused_and_one_named_that_works(refused: str) -> None:
    for its_kernel, its_sampler in APART:
        if its_sampler["kind"] != refused:
            continue
        d = dimensions(its_sampler)
        with pytest.raises(InvalidInput) as caught:
            pytest.fail(repr(spec(kernel=its_kernel, sampler=its_sampler, s=S, input_dim=d)))
        pointer, detail = caught.value.pointer, caught.value.detail
        base_is_to_blame = its_sampler.get("base", {}).get("kind") == "orthogonal" and its_kernel["kind"] in LAWS
        assert pointer == ("/sampler/base/kind" if base_is_to_blame else "/sampler/kind"), (its_kernel, its_sampler)
        advised = re.search(r"sampler (\w+)(?: alone)? works$|sampler is (\w+)$|for instance, (\w+)$", detail)
        assert advised, f"{detail!r} does not end with 'sampler NAME works', 'sampler is NAME' or 'for instance, NAME'"
        works = next(name for name in advised.groups() if name)
        advice = {"kind": works} | ({"dataset": "rows"} if works == "landmarks" else {})
        assert spec(kernel=its_kernel, sampler=advice, s=S, input_dim=d).sampler.kind == works


@each(("its_kernel", "its_sampler", "output"), [WITH_OUTPUTS[number] for number in sorted(COVERED)])
def test_fourier_features_approximate_their_kernel(its_kernel: Fields, its_sampler: Fields, output: Output) -> None:
    form, normalize, dtype = output
    is_rule = its_sampler["kind"] in RULES
    size, d = None if is_rule else size_of(its_sampler), dimensions(its_sampler)
    members: Fields = {"input_dim": d, "form": form, "normalize": normalize, "dtype": dtype, "s": size}
    of = spec(kernel=its_kernel, sampler=its_sampler, **members)
    if its_sampler["kind"] == "sparse_grid" and (form == "phase" or normalize):
        with pytest.raises(
            InvalidInput, match="only forms cos_sin and complex, not normalised, carry a signature"
        ) as caught:
            FourierMap.build(of)
        assert caught.value.pointer == ("/normalize" if normalize else "/form")
        return
    feature_map = build(of)
    assert isinstance(feature_map, FourierMap)
    # A rule is exact where rows are near each other, and only there.
    x, y = (rows(n, seed, d, size=0.15 if is_rule else 1.2) for n, seed in ((6, 1), (5, 2)))
    x, y = ((part + is_rule * rows(1, 5, d)).astype(dtype) for part in (x, y))
    features, others = feature_map.transform(x), feature_map.transform(y)
    arrays = feature_map.arrays
    signature = np.tile(arrays.get("signature", np.ones(feature_map.n_frequencies)), 2 if form == "cos_sin" else 1)
    close = 1e-5 if dtype == "float32" else 1e-13
    total = weight_sum(its_kernel)
    if its_sampler["kind"] == "reweighted_grid":  # its weights fit other rows before k(x, x)
        total = float(arrays["weights"].sum(dtype=np.float64))
        assert abs(total - 1) < 0.1
    k0 = 1.0 if normalize else total

    assert features.shape == (6, feature_map.n_output)
    assert feature_map.n_output == feature_map.n_frequencies * (2 if form == "cos_sin" else 1)
    assert features.dtype == feature_map.gram_dtype == np.result_type(dtype, "c8" if form == "complex" else dtype)
    assert np.isfinite(features).all()
    if normalize:
        np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)

    gram, itself = feature_map.gram(x, y), feature_map.gram(x, x)
    exact = feature_map.exact_gram(x, y)
    scale = max(1.0, float(np.abs(arrays["weights"]).sum()))
    np.testing.assert_allclose(gram, features * signature @ others.conj().T, rtol=0, atol=scale * close)
    np.testing.assert_allclose(itself, itself.conj().T, rtol=0, atol=scale * close)
    if form != "phase" or normalize:
        np.testing.assert_allclose(np.diag(itself), k0, rtol=0, atol=10 * scale * close)

    weights = arrays["weights"].astype(np.float64)
    assert weights.sum() == pytest.approx(total, abs=1e-5)
    # One standard error of independent frequencies is at most √(1.5 Σξ²), of the phase form; no sampler is to be
    # worse. Where nothing is random, the degree 4 of the rules leaves less than 1e-3 of k(0) at this distance.
    bound = 4 * np.sqrt(1.5 * np.square(weights).sum()) * k0 / total
    assert np.abs(gram - exact).max() < (1e-3 * k0 if is_rule and form != "phase" else bound)
    assert is_rule or np.abs(gram - exact).max() > 1e-6
    assert np.ptp(exact) > (0.005 if is_rule else 0.2) * k0

    assert arrays["frequencies"].shape == (feature_map.n_frequencies, d)
    whole = {"signature": np.dtype(np.int8), "signs": np.dtype(np.uint8)}
    assert all(array.dtype == whole.get(name, dtype) for name, array in arrays.items())
    for name, shown in feature_map.computed.items():
        assert (arrays[name].shape, arrays[name].dtype) == shown
    assert ("signature" in arrays) == (its_sampler["kind"] == "sparse_grid") == bool((weights < 0).any())
    frozen = sum(array.nbytes for name, array in arrays.items() if name not in feature_map.computed)
    assert 0 < feature_map.bytes <= FourierMap.drawing_bytes(of)
    # The zeros of a sum over subsets need not be held.
    zeros = np.count_nonzero(arrays["frequencies"] == 0) if its_kernel["kind"] == "anova" else 0
    assert frozen - zeros * arrays["frequencies"].itemsize <= feature_map.bytes
    assert frozen <= FourierMap.frozen_bytes(of)


@each(
    ("its_kernel", "its_sampler", "dtype"),
    [(*pair, list(Dtype)[number % len(Dtype)].value) for number, pair in enumerate(TOGETHER)],
)
def test_a_spec_names_one_map_and_another_seed_another_if_anything_is_random(
    its_kernel: Fields, its_sampler: Fields, dtype: str
) -> None:
    d = dimensions(its_sampler)
    of = spec(kernel=its_kernel, sampler=its_sampler, dtype=dtype, input_dim=d)
    read_back = MapSpec.model_validate_json(of.canonical())
    assert read_back.canonical() == of.canonical()
    made, again, other = (build(one) for one in (of, read_back, of.model_copy(update={"seed": 8})))
    x, y = (rows(n, n, d, dtype=dtype, its_kernel=its_kernel["kind"]) for n in (6, 5))
    if isinstance(made, ConsistentSamplingMap):
        assert isinstance(again, ConsistentSamplingMap)
        assert isinstance(other, ConsistentSamplingMap)
        assert made.codes(x).tobytes() == again.codes(x).tobytes() != other.codes(x).tobytes()
    for name, array in made.arrays.items():
        assert array.tobytes() == again.arrays[name].tobytes()
        if name not in ("weights", "signature"):
            assert (array.tobytes() != other.arrays[name].tobytes()) == is_random(its_sampler)
    # What is frozen is enough to open it.
    frozen = made.arrays.keys() - made.computed.keys()
    opened_again = open_map(of, {name: made.arrays[name].copy() for name in frozen}, 2)
    assert (opened_again.gram(x, y) == made.gram(x, y)).all()


@each("its_kernel", [k for model in KERNELS for k in variants(model)])
def test_an_exact_kernel_is_symmetric_positive_and_largest_on_the_diagonal(its_kernel: Fields) -> None:
    made: Any = kernel(**its_kernel)
    x = made.prepare(rows(12, 1, its_kernel=its_kernel["kind"]))
    gram = made.exact(x, x)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-13)
    of_itself = np.sqrt(np.diag(gram))
    if its_kernel["kind"] != "polynomial":  # whose rows differ in what they have with themselves
        np.testing.assert_allclose(np.square(of_itself), weight_sum(its_kernel), rtol=1e-15)
    np.testing.assert_allclose(made.pairs(x, x[::-1]), np.diag(gram[:, ::-1]), rtol=1e-13)
    assert np.linalg.eigvalsh(gram).min() > 0
    assert (gram < np.outer(of_itself, of_itself))[np.triu_indices(12, 1)].all()


def test_a_sampler_that_does_not_dictate_its_count_must_be_told() -> None:
    for its_kernel, its_sampler in TOGETHER:
        if its_sampler["kind"] in COUNTED:
            assert spec(kernel=its_kernel, sampler=its_sampler, s=None).s is None
            continue
        with pytest.raises(InvalidInput, match="s is missing") as caught:
            pytest.fail(repr(spec(kernel=its_kernel, sampler=its_sampler, s=None, input_dim=dimensions(its_sampler))))
        assert caught.value.pointer == "/s"
