"""The code of the page on how to add a kind runs, and its classes have what their bases ask for."""

import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "add-a-kind.md"
BLOCKS = dict(re.findall(r"```python\n# (\S+)\.py\n(.*?)```", PAGE.read_text(), re.DOTALL))


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
