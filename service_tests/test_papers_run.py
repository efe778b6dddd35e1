"""A run of the papers measures each cell once, two at a time; what fails or dies costs one cell, and leaves nothing."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression

from benchmarks.papers import __main__ as command
from benchmarks.papers import front
from benchmarks.papers.cells import Bench, Cell, Found, Kept
from benchmarks.papers.regression import component_errors, relative_error
from benchmarks.papers.sets import Split

FOREVER = float("inf")


def run_of(monkeypatch: pytest.MonkeyPatch, folder: Path, cells: list[Cell]) -> list[str]:
    """What went wrong in a run of a paper with these cells, and no service."""
    monkeypatch.setattr(command, "RESULTS", folder)
    monkeypatch.setattr(command, "own_service", nullcontext)
    monkeypatch.setattr(front, "PAPERS", {"any": SimpleNamespace(cells=lambda: cells)})
    return command.measure(["any"], folder, FOREVER)


def cell(name: str, measure: Callable[[Bench], Found], guess: float = 1.0) -> Cell:
    return Cell({"figure": name}, measure, guess)


def test_a_cell_that_fails_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = [True]

    def sometimes(_: Bench) -> Found:
        if broken[0]:
            raise ValueError("out of order")
        return {"value": 1}

    calls: list[str] = []

    def counted(name: str) -> Callable[[Bench], Found]:
        def measure(_: Bench) -> Found:
            calls.append(name)
            return {}

        return measure

    others = [cell(name, counted(name)) for name in "abcd"]
    failed = run_of(monkeypatch, tmp_path, [cell("broken", sometimes, 2.5), *others])
    assert len(failed) == 1
    assert "out of order" in failed[0]
    assert "broken" in failed[0]
    assert sorted(calls) == list("abcd")
    broken[0] = False
    assert run_of(monkeypatch, tmp_path, [cell("broken", sometimes), *others]) == []
    assert len(calls) == 4
    assert Kept(tmp_path / "any.jsonl").one(figure="broken") == {"value": 1}


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
