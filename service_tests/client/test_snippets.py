"""What the pages about the client show is run, block after block as a reader would, and prints what stands below it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service_tests.cases import with_nightly
from service_tests.running import Running
from service_tests.test_transcripts import same_line

ROOT = Path(__file__).parents[2]
SKLEARN, HOW_TO, BANDS, NEAR, COPIES = (
    ROOT / "docs" / "how-to" / f"{name}.md"
    for name in (
        "scikit-learn",
        "use-the-python-client",
        "choose-bands",
        "search-near-neighbours",
        "find-near-duplicates",
    )
)
RUN = """
import nbformat, nbclient, sys
nbclient.NotebookClient(nbformat.read(sys.argv[1], 4), timeout=500, kernel_name="python3").execute()
"""
BLOCKS = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize(
    "page",
    with_nightly([ROOT / "client" / "README.md", COPIES], [SKLEARN, HOW_TO, BANDS, NEAR]),
    ids=lambda page: page.name,
)
def test_a_page_does_what_it_says(
    page: Path,
    running: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOCHNER_URL", running.url)
    known: dict[str, Any] = {"__name__": "page"}
    blocks = BLOCKS.findall(page.read_text())
    assert blocks
    for source, shown in blocks:
        # As it is printed.
        exec(compile(source.replace("http://127.0.0.1:8000", running.url), page.name, "exec"), known)
        printed = capsys.readouterr().out.splitlines()
        assert len(printed) == len(shown.splitlines()), printed
        for told, wanted in zip(printed, shown.splitlines(), strict=True):
            assert same_line(told, wanted), f"{source}\nprinted {told}"
    for name in known.keys() & {"client"}:
        known[name].close()


@pytest.mark.nightly
def test_the_notebook_runs(running: Running, tmp_path: Path) -> None:
    """In a process of its own: the packages of notebooks warn of things that are not ours."""
    shutil.copy(ROOT / "examples" / "letters.parquet", tmp_path)
    environment = os.environ | {"BOCHNER_URL": running.url, "PYTHONPATH": str(ROOT / "client")}
    command = [sys.executable, "-c", RUN, str(ROOT / "examples" / "scikit_learn.ipynb")]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=600)
