"""The first page of the papers tells of what is kept."""

import pytest

pytest.importorskip("sklearn")

from benchmarks.papers import front
from benchmarks.papers.__main__ import DOCS, RESULTS
from benchmarks.papers.cells import Kept


def test_the_first_page_is_that_of_what_is_kept() -> None:
    """Pages in docs/ are written by the command, not by hand: `python -m benchmarks.papers --write` changes nothing."""
    kept = {name: Kept(RESULTS / f"{name}.jsonl") for name in front.PAPERS}
    assert (DOCS / "index.md").read_text() == front.first_page(kept).text()
