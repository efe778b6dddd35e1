import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import bochner_client
from bochner_client import Client


def test_threads_share_a_client(client: Client, standing: dict[str, str]) -> None:
    rows = [np.full((5, 3), i, np.float32) for i in range(40)]
    alone = [client.transform(standing["phase"], one) for one in rows]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda one: client.transform(standing["phase"], one), rows))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_the_client_needs_numpy_and_httpx_only() -> None:
    source = """
import sys
before = set(sys.modules)
import bochner_client
loaded = {one.partition(".")[0] for one in set(sys.modules) - before}
print(*sorted(loaded & {"scipy", "pandas", "tqdm", "sklearn", "bochner", "app", "numba", "pydantic"}))
"""
    here = Path(bochner_client.__file__).parents[1]
    ended = subprocess.run([sys.executable, "-c", source], cwd=here, capture_output=True, text=True, check=True)
    assert ended.stdout == "\n"


def test_the_client_needs_numpy_and_httpx_only_and_says_what_the_rest_takes() -> None:
    source = """
import sys
before = set(sys.modules)
import bochner_client
loaded = {one.partition(".")[0] for one in set(sys.modules) - before}
print(*sorted(loaded & {"scipy", "pandas", "tqdm", "sklearn", "bochner", "app", "numba", "pydantic"}))
sys.modules["sklearn"] = None
try:
    bochner_client.FeatureMap
except ImportError as error:
    print(error)
"""
    here = Path(bochner_client.__file__).parents[1]
    ended = subprocess.run([sys.executable, "-c", source], cwd=here, capture_output=True, text=True, check=True)
    assert ended.stdout == "\nFeatureMap needs scikit-learn: pip install 'bochner-client[sklearn]'\n"
