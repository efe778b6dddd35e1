"""The experiments of the papers run, go on where they were, and their first page tells of what is kept."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("sklearn")


from benchmarks.papers import front
from benchmarks.papers.__main__ import DOCS, RESULTS
from benchmarks.papers.cells import Bench, Cell, Kept
from benchmarks.papers.over_http import Service
from benchmarks.papers.sets import Sets
from service_tests.running import Running

COLUMNS = {"cpu": 21, "housing": 13, "mnist5000_raw": 784, "car": 6}


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Sets:
    folder, rng = tmp_path_factory.mktemp("sets"), np.random.default_rng(3)
    for name, columns in COLUMNS.items():
        rows = rng.integers(1, 200, (80, columns)).astype(np.float64)
        np.savez(
            folder / f"{name}.npz", X=rows, y=rows[:, 0] // 100, idx_train=np.arange(50), idx_test=np.arange(50, 80)
        )
    return Sets(folder, most=50)


@pytest.fixture
def bench(running: Running, sets: Sets) -> Iterator[Bench]:
    with running.client(Prefer="wait=30") as client:
        yield Bench(Service(client), sets, Kept())


def of_kind(cells: list[Cell]) -> list[Cell]:
    """The first cell of each figure."""
    return list({cell.settings["figure"]: cell for cell in reversed(cells)}.values())


@pytest.mark.nightly
@pytest.mark.parametrize("paper", front.PAPERS)
def test_a_cell_of_each_figure_is_measured(bench: Bench, paper: str) -> None:
    for cell in of_kind(front.PAPERS[paper].cells(tiny=True)):
        found = bench.found(cell)
        assert found
        assert json.loads(json.dumps(found)) == found
        assert "NaN" not in json.dumps(found)


def test_the_first_page_is_that_of_what_is_kept() -> None:
    """Pages in docs/ are written by the command, not by hand: `python -m benchmarks.papers --write` changes nothing."""
    kept = {name: Kept(RESULTS / f"{name}.jsonl") for name in front.PAPERS}
    assert (DOCS / "index.md").read_text() == front.first_page(kept).text()
