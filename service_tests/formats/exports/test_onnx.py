"""Graphs of maps, as the published runtime computes with them."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.errors import InvalidOption
from app.core.maps import FourierMap, family_of
from app.core.maps.terms import BaseSpec, Dtype, Form, TakenMap
from service_tests.cases import covering
from service_tests.core.combinations import Fields, dimensions, goes_together, named, pairs, rows, size_of
from service_tests.core.specs import sampler, spec
from service_tests.formats.exports.taken import DIGEST, features, largest_phase, taken, written

INPUTS: list[Fields] = [{}, {"input": {"center": 0.25, "scale": 2.0}}, {"input": {"unit_norm": True, "missing": 0.5}}]
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
    assert session.get_modelmeta().custom_metadata_map["digest"] == DIGEST
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


def test_maps_without_frequencies_have_no_graph() -> None:
    landmarks = spec(sampler={"kind": "uploaded_landmarks", "landmarks": [[1, 2, 3, 4]]})
    for of in (landmarks, spec(kernel={"kind": "gmm"}, sampler={"kind": "gcws"})):
        with pytest.raises(InvalidOption, match="npz holds every map") as caught:
            written(taken(of)[0], "onnx")
        assert caught.value.option == "format"
