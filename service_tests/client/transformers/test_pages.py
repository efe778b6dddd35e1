"""What the how-to page and the notebook show is what happens."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service_tests.running import Running, service

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "how-to" / "scikit-learn.md"
NOTEBOOK = ROOT / "examples" / "scikit_learn.ipynb"
VARIES = re.compile(r"\{.*\}|\d+(\.\d+)?")


@pytest.mark.nightly
def test_the_lines_of_the_page_do_what_it_says(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOCHNER_URL", running.url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    found: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(block, found)
    assert found["accuracy"] > 0.75
    assert found["of_codes"] > 0.8
    assert found["search"].best_score_ > 0.5
    assert len(found["search"].cv_results_["params"]) == 12
    assert 5 < found["scale"] < 15
    assert 0 < found["error"] < 0.2
    assert found["fingerprints"].dtype == np.uint32
    assert np.load(tmp_path / "features.npy").shape == (2000, 128)
    assert b"vectors" in found["graph"]


def outputs(notebook: Any) -> list[list[str]]:
    """What each cell shows as text, but for bars, and numbers and settings, which hang on the machine."""
    texts: list[list[str]] = []
    for cell in notebook.cells:
        shown = [one for one in cell.get("outputs", []) if one.output_type in ("stream", "execute_result")]
        texts.append([VARIES.sub("#", one.text if "text" in one else one.data["text/plain"]) for one in shown])
    return texts


@pytest.mark.nightly
def test_the_notebook_runs_and_shows_what_is_kept_in_it(tmp_path: Path) -> None:
    from nbformat import read

    shutil.copy(ROOT / "examples" / "letters.parquet", tmp_path)
    with service(tmp_path / "data", "--job-workers", "1") as running:
        python_path = os.pathsep.join([str(ROOT / "client"), os.environ.get("PYTHONPATH", "")])
        subprocess.run(
            [sys.executable, "-c", RUN, str(NOTEBOOK), str(tmp_path)],
            env=os.environ | {"BOCHNER_URL": running.url, "PYTHONPATH": python_path},
            check=True,
            timeout=600,
        )
    kept, ran = (read(path, 4) for path in (NOTEBOOK, tmp_path / "ran.ipynb"))  # type: ignore[no-untyped-call]
    assert outputs(ran) == outputs(kept)
    told = "".join(text for texts in outputs(kept) for text in texts)
    assert told.count("True") == 2
    assert "# settings" in told
    bars = [one for cell in ran.cells for one in cell.get("outputs", []) if one.output_type == "display_data"]
    assert bars, "two, unless the map that is learned needs no job"


# Of a process of its own: the packages of notebooks warn of things that are not ours.
RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
NotebookClient(notebook, timeout=500, kernel_name="python3", resources={"metadata": {"path": sys.argv[2]}}).execute()
nbformat.write(notebook, sys.argv[2] + "/ran.ipynb")
"""
