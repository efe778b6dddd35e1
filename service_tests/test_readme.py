"""What the README says of the source is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SECTION = (ROOT / "README.md").read_text().partition("## In the source")[2]
TREE, TEXT = SECTION.split("```")[1:3]
SOURCE = "\n".join(path.read_text() for path in (ROOT / "app").rglob("*.py"))


def test_the_tree_names_every_package() -> None:
    named = set(re.findall(r"[a-z_]+(?:/[a-z_]+)*(?:/|\.py)(?=[ ;])", TREE))
    packages = {f"app/{path.parent.name}/" for path in (ROOT / "app").glob("*/__init__.py")}
    assert packages <= named
    assert all((ROOT / one).exists() for one in named), named


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([a-z_/]+\.py)`", TEXT)) - {"app/core/kernels/yours.py"}))
def test_a_file_that_is_named_is_there(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([A-Za-z_]+)(?:\(.*?\))?`", TEXT))))
def test_a_name_that_is_named_is_there(name: str) -> None:
    assert re.search(rf"\b{name}\b", SOURCE)
