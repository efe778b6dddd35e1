"""The Python code that stands on a page of docs/: in blocks as a reader sees it, or its functions alone."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
_BLOCKS = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)
_KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef)


def blocks(page: str) -> list[tuple[str, str]]:
    """The blocks of a page, each with the output that stands below it."""
    return _BLOCKS.findall((DOCS / page).read_text())


def functions(page: str) -> dict[str, Any]:
    """What a page imports and defines, by name. Nothing else of it is run."""
    defined: dict[str, Any] = {}
    tree = _tree(page)
    tree.body = [node for node in tree.body if isinstance(node, _KEPT)]
    exec(compile(tree, page, "exec"), defined)
    return defined


def length(page: str, names: Iterable[str]) -> int:
    """Lines of code of some functions of a page, without empty lines and docstrings."""
    wanted = {*names}
    found = [node for node in _tree(page).body if isinstance(node, ast.FunctionDef) and node.name in wanted]
    for node in found:
        if ast.get_docstring(node):
            del node.body[0]
    return sum(1 + sum(part.end_lineno - part.lineno + 1 for part in node.body if part.end_lineno) for node in found)


def _tree(page: str) -> ast.Module:
    return ast.parse("\n".join(source for source, _ in blocks(page)))
