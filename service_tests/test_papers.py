"""The experiments of the papers run, go on where they were, and their first page tells of what is kept."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression

from benchmarks.papers import front
from benchmarks.papers.__main__ import DOCS, RESULTS
from benchmarks.papers.cells import Bench, Cell, Kept
from benchmarks.papers.over_http import Service
from benchmarks.papers.regression import component_errors, relative_error
from benchmarks.papers.sets import Sets, Split
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


def test_regression_on_components_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(5)
    mixing = rng.standard_normal((9, 9))
    x, x_test = (rng.standard_normal((n, 9)) @ mixing + 3 for n in (60, 25))
    y, y_test = (rows[:, 0] ** 2 + rows[:, 3] for rows in (x, x_test))
    wanted: list[Any] = []
    for n in (9, 4):
        pca = PCA(n).fit(x)
        model = LinearRegression().fit(pca.transform(x), y)
        wanted.append(relative_error(model.predict(pca.transform(x_test)), y_test))
    assert component_errors(x, x_test, Split(x, y, x_test, y_test), [9, 4]) == pytest.approx(wanted, rel=1e-9)
    twice, twice_test = (np.hstack([rows, -rows]) for rows in (x, x_test))  # columns that depend on others add nothing
    assert component_errors(twice, twice_test, Split(x, y, x_test, y_test), [18]) == pytest.approx(wanted[:1], rel=1e-9)
