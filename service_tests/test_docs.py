"""What the README and the pages of docs/ name is there."""

import re
from pathlib import Path

from app.metrics.declared import ASKED, COUNTED
from app.settings import ClientSettings, Settings

ROOT = Path(__file__).parent.parent
WRITTEN = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"))
}
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
