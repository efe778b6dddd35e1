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

from app.core.maps import FourierMap
from app.core.maps.terms import BaseSpec, Dtype, Form
from app.core.samplers.sobol import Sobol
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
