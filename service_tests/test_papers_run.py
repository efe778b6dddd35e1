"""A run of the papers measures each cell once, two at a time; what fails or dies costs one cell, and leaves nothing."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

pytest.importorskip("sklearn")

from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression

from benchmarks.data import neighbour_distance
from benchmarks.papers import __main__ as command
from benchmarks.papers import attached, front
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


def test_two_cells_are_measured_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    both = Barrier(2, timeout=20)
    cells = [cell(str(i), lambda _: {"place": both.wait()}) for i in range(4)]
    assert run_of(monkeypatch, tmp_path, cells) == []
    assert len((tmp_path / "any.jsonl").read_text().splitlines()) == 4


def test_a_cell_that_others_need_is_measured_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[str] = []

    def shared(_: Bench) -> Found:
        calls.append("shared")
        time.sleep(0.05)  # long enough for the other thread to ask for it
        return {"value": 2}

    first = cell("shared", shared, 0.1)
    cells = [first, *(cell(str(i), lambda bench: {"twice": 2 * bench.found(first)["value"]}, i + 1) for i in range(3))]
    assert run_of(monkeypatch, tmp_path, cells) == []
    assert calls == ["shared"]
    kept = Kept(tmp_path / "any.jsonl")
    assert [kept.get(one.settings) for one in cells] == [{"value": 2}, *[{"twice": 4}] * 3]


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


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "any.jsonl"
    for name in "ab":
        Kept(path).add({"figure": name}, {"value": 1}, 1.0)
    path.write_text(path.read_text()[:-9])
    kept = Kept(path)
    assert kept.one(figure="a") == {"value": 1}
    assert kept.one(figure="b") is None
    kept.add({"figure": "b"}, {"value": 2}, 1.0)
    assert [Kept(path).one(figure=name) for name in "ab"] == [{"value": 1}, {"value": 2}]


def test_a_service_ends_when_its_parent_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    parents, killed = iter([7, 7, 1]), []
    monkeypatch.setattr(attached, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(
        attached,
        "os",
        SimpleNamespace(getppid=lambda: next(parents), getpid=lambda: 8, kill=lambda *how: killed.append(how)),
    )
    attached.end_with(7)
    assert killed == [(8, signal.SIGTERM)]
    assert list(parents) == []


@pytest.mark.nightly
def test_nothing_of_a_killed_run_stays_behind() -> None:
    script = (
        "import sys\nfrom benchmarks.papers.over_http import own_service\n"
        "with own_service():\n    print('up', flush=True)\n    sys.stdin.read()"
    )
    run = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stdout.readline() == b"up\n"
    started = psutil.Process(run.pid).children(recursive=True)
    command_line = next(line for one in started if "--data-dir" in (line := one.cmdline()))
    folder = Path(command_line[command_line.index("--data-dir") + 1]).parent
    assert folder.exists()
    run.kill()
    run.communicate()
    _, alive = psutil.wait_procs(started, timeout=60)
    assert not alive
    assert not folder.exists()


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


def test_neighbours_are_sought_among_all_rows() -> None:
    rows = np.random.default_rng(2).standard_normal((80, 3))
    distances = np.sort(np.linalg.norm(rows[:30, None] - rows, axis=2), axis=1)
    assert neighbour_distance(rows[:30], rows) == pytest.approx(distances[:, 10].mean(), rel=1e-12)
    assert neighbour_distance(rows[:30]) > 1.1 * neighbour_distance(rows[:30], rows)
