"""The code of the page on how to add a kind does what the page says."""

import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from app.core.answers import OneHot, RowBlocks
from app.core.diagnostics import DIAGNOSTICS, Diagnostic
from app.core.errors import InvalidInput
from app.core.kernels.gaussian import Gaussian
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.maps import FourierMap
from app.core.maps.base import FeatureMap
from app.core.maps.terms import BaseSpec, Dtype, Form, Gives
from app.core.progress import OutOfTime, Progress, TimedProgress
from app.core.samplers.sobol import Sobol
from app.formats import Body, Format
from service_tests.core.combinations import rows

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "add-a-kind.md"
BLOCKS = dict(re.findall(r"```python\n# (\S+)\.py\n(.*?)```", PAGE.read_text(), re.DOTALL))
D = 3


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ModuleType]]:
    """The modules of the page by the last part of their names. They can import each other while they are used."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for place, code in BLOCKS.items():
            file = tmp_path_factory.mktemp("page") / "module.py"
            file.write_text(code)
            name = place.replace("/", ".")
            spec = importlib.util.spec_from_file_location(name, file)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            patch.setitem(sys.modules, name, module)
            spec.loader.exec_module(module)
            found[name.rpartition(".")[2]] = module
        yield found


def spec(kernel: Any, sampler: Any, s: int | None = 512, form: Form = Form.cos_sin) -> BaseSpec:
    return BaseSpec(input_dim=D, kernel=kernel, sampler=sampler, s=s, form=form, dtype=Dtype.float64)


def fourier(of: BaseSpec) -> FourierMap:
    return FourierMap(of, FourierMap.build(of).arrays)


def test_there_is_an_example_of_each_and_none_of_them_is_there_already() -> None:
    folders = {place.rpartition("/")[0] for place in BLOCKS}
    assert folders == {"app/core/kernels", "app/core/samplers", "app/core/diagnostics", "app/formats", "app/core/maps"}
    assert not [place for place in BLOCKS if (PAGE.parents[2] / f"{place}.py").exists()], "take another example"


def test_classes_have_what_their_bases_ask_for_and_their_methods_take_the_same(written: dict[str, ModuleType]) -> None:
    compared = 0
    for module in written.values():
        for made in vars(module).values():
            if not inspect.isclass(made) or made.__module__ != module.__name__:
                continue
            missing = [name for name in dir(made) if getattr(getattr(made, name), "__isabstractmethod__", False)]
            assert not missing, f"{made.__name__} on the page does not have {missing}"
            for name, method in vars(made).items():
                over = getattr(made.__base__, name, None)
                if name == "__init__" or not inspect.isroutine(method) or not callable(over):
                    continue
                own, base = (inspect.signature(one).parameters.values() for one in (getattr(made, name), over))
                assert [(one.name, one.default) for one in own] == [(one.name, one.default) for one in base], name
                compared += 1
    assert compared > 15


def test_the_kernel_is_what_its_frequencies_make(written: dict[str, ModuleType]) -> None:
    kernel = written["logistic"].Logistic(kind="logistic", length_scale=2.0)
    made = fourier(spec(kernel, Sobol(kind="sobol"), 4096))
    x, y = rows(5, 1, D), rows(6, 2, D)
    np.testing.assert_allclose(made.gram(x, y), made.exact_gram(x, y), atol=0.01)
    np.testing.assert_allclose(made.exact_pairs(x, x), 1)
    assert np.ptp(made.exact_gram(x, y)) > 0.2
    law, at = stats.logistic(), np.linspace(-5, 5, 11)[:, None]
    np.testing.assert_allclose(kernel.frequencies(law.cdf(at)), at / 2)
    np.testing.assert_allclose(kernel.frequency_deviations(1), law.std() / 2)
    assert kernel.gram(np.zeros((1, 1)), np.array([[0.0], [1e300]])).tolist() == [pytest.approx([1, 0], abs=1e-300)]


def test_the_sampler_spreads_its_points_evenly(written: dict[str, ModuleType]) -> None:
    sampler = written["kronecker"].Kronecker(kind="kronecker")
    points = sampler.points(1000, D, np.random.default_rng(1))
    assert points.shape == (1000, D)
    counts = [np.histogram(column, 20, (0, 1))[0] for column in points.T]
    assert np.abs(np.array(counts) - 50).max() < 10  # independent points differ by up to 20
    kernel = Gaussian(kind="gaussian", length_scale=1.0)
    made = fourier(spec(kernel, sampler))
    x = rows(6, 1, D)
    assert np.abs(made.gram(x, x) - made.exact_gram(x, x)).max() < 0.02


def test_the_diagnostic_sees_the_noise_of_the_form_phase_and_goes_on_where_it_was(
    written: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = written["diagonal"]
    diagnostic: Diagnostic = module.Diagonal(tolerance=0.01)
    assert diagnostic.kind not in DIAGNOSTICS
    kernel, sampler = Gaussian(kind="gaussian", length_scale=1.0), Sobol(kind="sobol")
    exact, noisy = (fourier(spec(kernel, sampler, form=form)) for form in (Form.cos_sin, Form.phase))
    given = {"vectors": rows(40, 1, D)}
    found = diagnostic.run(exact, given).answer
    assert found == {"rows": 40, "mean": pytest.approx(0, abs=1e-12), "above": 0}
    whole = diagnostic.run(noisy, given)
    assert whole.answer["above"]
    assert diagnostic.memory_bytes(noisy, given) > 16 * noisy.n_output
    monkeypatch.setattr(module, "_FEATURES_PER_BLOCK", 7 * noisy.n_output)
    with pytest.raises(OutOfTime) as ended:
        diagnostic.run(noisy, given, TimedProgress(0))
    assert (ended.value.step, ended.value.of) == (7, 40)

    class Resumed(Progress):
        def restored(self) -> bytes:
            return ended.value.state

    assert diagnostic.run(noisy, given, Resumed()) == diagnostic.run(noisy, given)


def test_the_format_reads_and_writes_rows_by_its_header(written: dict[str, ModuleType]) -> None:
    form: Format = written["raw"].Raw()
    (header,) = form.request_headers
    sent = rows(4, 1, D, "float32")
    content = b"".join(form.encode({"features": sent}).pieces)
    np.testing.assert_array_equal(form.matrix(Body(content, {header: "3"})), sent)
    posted = form.decode(Body(content, {header: "3"}), D, "vectors")
    assert set(posted) == {"vectors"}
    two_parts = np.c_[sent[:, 0], np.ones(4)].astype("<f4").tobytes()
    assert b"".join(form.encode({"features": sent[:, 0] + 1j}).pieces) == two_parts
    blocks = RowBlocks(sent.shape, sent.dtype, [slice(0, 3), slice(3, 4)], sent.__getitem__)
    assert b"".join(form.encode({"features": blocks}).pieces) == content
    assert len(b"".join(form.encode({"codes": OneHot(np.zeros((2, 3), np.int32), 8, np.ones(2, bool))}).pieces)) == 24
    for headers in ({}, {header: "0"}, {header: "-3"}, {header: "9" * 30}, {header: "5"}):
        with pytest.raises(InvalidInput):
            form.matrix(Body(content, headers))


def test_the_family_has_features_of_every_kernel_and_refuses_the_rest(written: dict[str, ModuleType]) -> None:
    family: type[FeatureMap] = written["landmarks"].LandmarkMap
    landmarks = rows(30, 3, D)
    sampler = written["landmarks"].OwnLandmarks(
        kind="own_landmarks", landmarks=tuple(tuple(row) for row in landmarks.tolist())
    )
    of = spec(Gaussian(kind="gaussian", length_scale=1.0), sampler, None)
    family.check(of)
    built = family.build(of)
    assert {name: array.shape for name, array in built.arrays.items()} == {
        name: array.shape for name, array in family.frozen(of).items()
    }
    made = family(of, built.arrays)
    np.testing.assert_allclose(made.gram(landmarks, landmarks), made.exact_gram(landmarks, landmarks), atol=1e-6)
    x, y = rows(5, 1, D), rows(6, 2, D)
    np.testing.assert_allclose(made.gram(x, y), made.transform(x) @ made.transform(y).T, atol=1e-12)
    np.testing.assert_allclose(made.gram(x, y), made.exact_gram(x, y), atol=0.1)
    many, pauses = rows(600, 1, D), [0]
    exact = made.exact_gram(many, many, lambda: pauses.append(len(pauses)))
    np.testing.assert_allclose(exact, made.kernel.exact(many, many), rtol=1e-12)
    assert pauses == [0, 1, 2, 3]
    assert made.operations(x) > 0
    assert made.gram_operations(x, y) > made.operations(x)
    assert made.bytes <= family.drawing_bytes(of)
    assert family.size_for(sampler, 30, D) is None
    for refused in (
        lambda: made.codes(x),
        lambda: made.check_gives(Gives.frequencies),
        lambda: family.size_for(sampler, 29, D),
        lambda: family.check(of.model_copy(update={"input_dim": 4})),
    ):
        with pytest.raises(InvalidInput):
            refused()


def test_the_hashes_collide_as_the_kernel_says_whichever_are_asked_for(written: dict[str, ModuleType]) -> None:
    module, kernel = written["icws"], GeneralizedMinMax(kind="gmm")
    of = spec(kernel, module.ImprovedSampling(kind="icws"), 4000)
    made = module.ImprovedSamplingMap(of)
    x = rows(5, 1, D)
    x[2, 1] = 0
    exact = made.exact_gram(x, x)
    assert np.ptp(exact) > 0.5
    assert (np.abs(made.gram(x, x) - exact) <= 4 * np.sqrt(exact * (1 - exact) / 4000) + 1e-12).all()
    np.testing.assert_array_equal(made.samples(x, slice(70, 90)), made.samples(x[::-1], slice(0, 4000))[::-1, 70:90])
    with pytest.raises(InvalidInput, match="row 0 is all zero"):
        made.codes(np.zeros((1, D)))
