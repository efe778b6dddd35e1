"""The sections of RESULTS.md: read by the documentation, written by a run."""

import re
from collections.abc import Iterable
from pathlib import Path

RESULTS = Path(__file__).parent / "RESULTS.md"


def _found(text: str, title: str) -> re.Match[str] | None:
    return re.search(rf"^## {re.escape(title)}\n(?P<body>.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)


def section_of(text: str, title: str) -> str:
    """What stands below a title; empty if there is no such section."""
    found = _found(text, title)
    return found["body"].strip() if found else ""


def with_section(text: str, title: str, lines: Iterable[str]) -> str:
    """The text with these lines below a title; a section that is new stands behind the first."""
    section = re.sub(r"\n{3,}", "\n\n", f"## {title}\n\n" + "\n".join(lines)).rstrip() + "\n\n"
    found = _found(text, title)
    begin, end = found.span() if found else (text.index("\n## ", text.index("\n## ") + 1) + 1,) * 2
    return (text[:begin] + section + text[end:]).rstrip() + "\n"


def rows_of(section: str) -> list[tuple[str, ...]]:
    """The cells of a section's table, its head left out."""
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [tuple(line.strip("| ").split(" | ")) for line in lines[2:]]
