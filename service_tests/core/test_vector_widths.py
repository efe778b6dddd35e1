"""Vectors of either width, and a processor without fused multiply-add, give the bits that this processor gives."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from app.core.tiles import VECTOR_BYTES

_DIGEST = """
import hashlib, json, sys
from app.core import tiles
if width := int(sys.argv[1]):
    tiles.VECTOR_BYTES, tiles.ROWS, tiles.COLUMN_BYTES = width, {32: 6, 64: 12}[width], 2 * width
from itertools import product
import numpy as np
from scipy.sparse import csr_array
from app.core.indexes.search import BITS, nearest
from app.core.maps import make_map
from app.core.spec import MapSpec

def digest(*arrays):
    print(hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest())

def feature_map(**fields):
    fields = {"input_dim": 300, "s": 140, "kernel": {"kind": "gaussian", "length_scale": 20.0}, **fields}
    return make_map(MapSpec.model_validate_json(json.dumps(fields)))

rng = np.random.default_rng(8)
for dtype, normalize in product(("float32", "float64"), (False, True)):
    rows = rng.standard_normal((29, 300)).astype(dtype)
    some = csr_array(np.where(rows > 1, rows, 0))
    for form in ("cos_sin", "phase", "complex"):
        one = feature_map(sampler={"kind": "halton"}, form=form, dtype=dtype, normalize=normalize)
        digest(one.transform(rows), one.transform(some), one.gram(rows, rows[:20]))
    fast = feature_map(sampler={"kind": "structured_orthogonal"}, dtype=dtype, normalize=normalize)
    digest(fast.transform(rows), fast.gram(rows, rows[:20]))
codes = rng.integers(0, 4, (500, 151), np.uint8)
for bits in BITS:
    found = nearest(codes[:20], codes, 150 * 8 // bits, bits, 9)
    digest(found.slots, found.counts)
"""

# As compilers see the oldest x86-64.
_NO_FUSED_MULTIPLY_ADD = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""}


def digests(width: int = 0, **environment: str) -> list[str]:
    """Digests of features, Gram blocks and codes found, computed with vectors of `width` bytes; 0 for the default."""
    command = [sys.executable, "-c", _DIGEST, str(width)]
    return subprocess.run(
        command, env=os.environ | environment, stdout=subprocess.PIPE, check=True, text=True
    ).stdout.split()


@pytest.fixture(scope="module")
def own() -> list[str]:
    found = digests()
    assert len(found) == 21
    return found


@pytest.mark.gate
def test_vectors_of_the_other_width_without_fused_multiply_add_give_the_same_bits(
    own: list[str], tmp_path: Path
) -> None:
    """Only x86-64 has processors without the instruction; the C library then multiplies and adds."""
    environment = _NO_FUSED_MULTIPLY_ADD if platform.machine() in ("x86_64", "AMD64") else {}
    assert digests(32 if VECTOR_BYTES == 64 else 64, NUMBA_CACHE_DIR=str(tmp_path), **environment) == own
