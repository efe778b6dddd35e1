"""What the README and the pages of docs/ name is there."""

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from app.metrics import ASKED, COUNTED
from app.settings import ClientSettings, Settings
from docs.generate import pages

ROOT = Path(__file__).parent.parent
WRITTEN = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
}
PAGES = pages()
NOT_YET_THERE = re.compile(r"yours|diagonal")


def test_every_file_setting_and_metric_that_a_page_names_is_there() -> None:
    top = "app|docs|openapi|service_tests|benchmarks|examples|docker|deploy|client"
    settings = {Settings.variable(field) for field in (*Settings.model_fields, *ClientSettings.model_fields)}
    ends = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count", "")}
    metrics = {one.name + end for one in (*COUNTED, *ASKED) for end in ends[one.kind]} | {"bochner_client"}
    for page, text in WRITTEN.items():
        files = {path for path in re.findall(rf"`((?:{top})/[\w./-]*)`", text) if not NOT_YET_THERE.search(path)}
        assert not [path for path in files if not (ROOT / path).exists()], page
        assert set(re.findall(r"\bBOCHNER_[A-Z_]+\b", text)) <= settings, page
        assert set(re.findall(r"\bbochner_[a-z_]+\b", text)) <= metrics, page


@pytest.mark.parametrize("path", PAGES)
def test_the_reference_is_what_the_code_says(path: Path) -> None:
    assert path.read_text() == PAGES[path], "write it anew: python -m docs.generate"


def test_the_kernel_of_the_page_on_adding_a_kind_is_what_its_frequencies_make() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", WRITTEN["docs/how-to/add-a-kind.md"], re.DOTALL)
    module = ModuleType("logistic")
    exec(code, vars(module))
    kernel, rng = module.Logistic(kind="logistic", length_scale=2.0), np.random.default_rng(1)
    rows = rng.normal(size=(6, 3))
    phases = rows @ kernel.frequencies(rng.random((100_000, 3))).T
    features = np.hstack([np.cos(phases), np.sin(phases)]) / np.sqrt(100_000)
    # A standard error of at most 1/√(2·100,000), 0.0022.
    np.testing.assert_allclose(features @ features.T, kernel.gram(rows, rows), atol=0.01)
    assert kernel.frequency_deviations(1) == stats.logistic.std() / 2
