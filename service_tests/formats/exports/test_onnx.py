"""Graphs of maps, as the published runtime computes with them."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.errors import InvalidOption
from app.core.maps import FourierMap, family_of
from app.core.maps.taken_map import TakenMap
from app.core.maps.terms import BaseSpec
from app.core.spec import Dtype, Form, MapSpec
from app.formats.exports.onnx_graph import OPSET
from app.formats.exports.protobuf import Message
from service_tests.cases import covering
from service_tests.core.combinations import (
    LEAST_DIMENSIONS,
    Fields,
    dimensions,
    goes_together,
    named,
    pairs,
    rows,
    size_of,
)
from service_tests.core.specs import sampler, spec
from service_tests.formats.exports.taken import DIGEST, features, largest_phase, taken, written

INPUTS: list[Fields] = [
    {},
    {"input": {"center": 0.25, "scale": 2.0}},
    {"input": {"unit_norm": True, "missing": 0.5}},
]
FOURIER = [
    (*pair, form.value, normalize, dtype.value, given)
    for pair in pairs()
    if goes_together(*pair) and family_of(sampler(**pair[1])) is FourierMap
    for form in Form
    for normalize in (False, True)
    for dtype in Dtype
    for given in INPUTS
    if pair[1]["kind"] != "sparse_grid" or not (form is Form.phase or normalize)
]
EVERY = [FOURIER[i] for i in sorted(covering([tuple(map(named, case)) for case in FOURIER]))]


def computed(of: TakenMap, x: Any) -> NDArray[Any]:
    """What onnxruntime computes of the rows by the file of a map."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(written(of, "onnx"), options, providers=["CPUExecutionProvider"])
    (wanted,) = session.get_inputs()
    assert wanted.name == "vectors"
    assert wanted.shape == ["rows", of.spec.input_dim]
    double = of.spec.input is not None or of.spec.dtype is Dtype.float64
    assert wanted.type == ("tensor(double)" if double else "tensor(float)")
    outputs = {one.name: one.type for one in session.get_outputs()}
    of_dtype = {Dtype.float32: "tensor(float)", Dtype.float64: "tensor(double)"}[of.spec.dtype]
    names = ["real", "imag"] if of.spec.form is Form.complex else ["features"]
    assert outputs == dict.fromkeys(names, of_dtype)
    found: list[NDArray[Any]] = session.run(None, {"vectors": x.astype(np.float64 if double else np.float32)})
    return found[0] if len(found) == 1 else found[0] + 1j * found[1]


def bar(of: BaseSpec, phase: float, amplitudes: Any) -> float:
    """How far features may be off: four spacings of the map's dtype at the largest phase, times the largest feature."""
    return 4 * float(np.spacing(of.numpy_dtype.type(phase))) * max(1.0, float(amplitudes.max()))


@pytest.mark.nightly
@pytest.mark.parametrize(("its_kernel", "its_sampler", "form", "normalize", "dtype", "given"), EVERY, ids=named)
def test_a_runtime_computes_the_features_of_the_service(
    its_kernel: Fields, its_sampler: Fields, form: str, normalize: bool, dtype: str, given: Fields
) -> None:
    d = dimensions(its_sampler)
    members: Fields = {"input_dim": d, "form": form, "normalize": normalize, "dtype": dtype, "s": size_of(its_sampler)}
    away, here = taken(spec(kernel=its_kernel, sampler=its_sampler, **members, **given))
    x = rows(20, 1, d)
    found, wanted = computed(away, x), features(here, x)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    most = bar(here.spec, largest_phase(here, x), away.arrays["amplitudes"])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=most)
    assert np.median(np.abs(found - wanted)) < 10 * np.finfo(dtype).eps
    assert np.median(np.abs(found - wanted[::-1])) > 1e-3


LARGE = [
    (kind, d, s, size)
    for kind in ("monte_carlo", "structured_orthogonal")
    for d in (3, 100, 129, 784)
    for s in (1, 7, 300)
    for size in (1.0, 50.0, 1e4, 1e7)
    if d >= LEAST_DIMENSIONS.get(kind, 1)
]


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "d", "s", "size"), LARGE)
def test_large_phases_and_many_dimensions_are_as_near(kind: str, d: int, s: int, size: float) -> None:
    scale = {"kind": "gaussian", "length_scale": float(np.sqrt(d))}
    for form in Form:
        away, here = taken(spec(input_dim=d, s=s, kernel=scale, sampler={"kind": kind}, form=form.value))
        x = rows(50, 1, d, "float32", size * np.sqrt(d))
        phase = largest_phase(here, x)
        assert phase > size / 2 or s < 10
        most = bar(here.spec, phase, away.arrays["amplitudes"])
        np.testing.assert_allclose(computed(away, x), features(here, x), rtol=0, atol=most)


@pytest.mark.nightly
@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize(
    "members",
    [
        {"form": "complex"},
        {"form": "phase", "normalize": True},
        {"kernel": {"kind": "correlation_rbf", "gamma": 0.9}},
        {"input": {"center": [1, 2, 3, 4], "scale": 2.0, "unit_norm": True, "missing": 0}},
        {"input_dim": 20, "sampler": {"kind": "structured_orthogonal"}},
        {"input_dim": 300},
    ],
    ids=str,
)
def test_no_rows_and_one_are_batches(members: Fields, n: int) -> None:
    away, here = taken(spec(**members))
    x = rows(n, 1, here.spec.input_dim, "float32")
    np.testing.assert_allclose(computed(away, x), features(here, x), rtol=0, atol=1e-6)


@pytest.mark.nightly
def test_the_input_of_a_map_is_in_the_graph() -> None:
    given = {"center": [1e9, 0, 5, 0], "scale": [10.0, 1, 1, 3], "unit_norm": True, "missing": 6.0}
    away, here = taken(spec(input=given))
    x = np.array([[1e9 + 3, 1, 2, 3], [1e9, 0, 5, 0], [1e9, np.nan, np.nan, 1], [1e9 - 70, -1, 1e8, -2]])
    found = computed(away, x)
    np.testing.assert_allclose(found, features(here, x), rtol=0, atol=1e-6)
    assert np.abs(found[0] - found[1]).max() > 0.01


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["monte_carlo", "structured_orthogonal"])
def test_the_file_is_a_valid_graph_that_says_what_it_is(kind: str) -> None:
    import onnx

    of = spec(input_dim=150, s=200, sampler={"kind": kind}, input={"unit_norm": True, "missing": 0})
    model = onnx.load_from_string(written(taken(of)[0], "onnx"))
    onnx.checker.check_model(model, full_check=True)
    assert [one.version for one in model.opset_import] == [OPSET]
    told = {one.key: one.value for one in model.metadata_props}
    assert told["digest"] == DIGEST
    assert MapSpec.model_validate_json(told["spec"]) == of
    assert model.producer_name == "bochner"


@pytest.mark.nightly
def test_a_structured_map_is_small() -> None:
    of = {"input_dim": 784, "s": 4096, "kernel": {"kind": "gaussian", "length_scale": 28.0}}
    away, _ = taken(spec(**of, sampler={"kind": "structured_orthogonal"}))
    assert len(written(away, "onnx")) < 60_000, "12 MB are the frequencies"


@pytest.mark.parametrize(
    "members",
    [
        {"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}},
        {"sampler": {"kind": "uploaded_landmarks", "landmarks": [[1, 2, 3, 4]]}},
    ],
    ids=str,
)
def test_maps_without_frequencies_have_no_graph(members: Fields) -> None:
    with pytest.raises(InvalidOption, match="npz and safetensors hold every map") as caught:
        written(taken(spec(**members))[0], "onnx")
    assert caught.value.option == "format"


def test_messages_are_written_as_the_format_has_them() -> None:
    inner = Message().number(1, 150).text(2, "testing")
    outer = Message().message(3, inner).number(4, 3, 270).numbers(6, np.array([1.0, 2.0], ">f4"))
    written_out = b"".join(outer.pieces())
    # The first two from the format's own documentation.
    assert written_out == bytes.fromhex(
        "1a 0c 08 96 01 12 07 74 65 73 74 69 6e 67 20 03 20 8e 02 32 08 0000803f 00000040"
    )
    assert outer.nbytes == len(written_out)


def test_json_of_the_spec_is_what_the_record_has() -> None:
    away, here = taken(spec())
    assert json.loads(away.told["spec"]) == json.loads(here.spec.canonical())
