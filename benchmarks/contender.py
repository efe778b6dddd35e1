"""One thing that is timed, in a process of its own, where no other has left its mark on memory or threads.

Run as a script it does the work once for every line that comes in, and answers with the seconds. Of the project it
imports only what older versions have too, so that it can time theirs.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

PRODUCT, KEPT, PLAIN = "NumPy product", "the same into memory that is kept", "plain NumPy"
RBF, NYSTROEM, SKETCH = "RBFSampler", "Nystroem", "PolynomialCountSketch"
LANDMARKS = "landmark map"
# Variables that hold linear algebra to few threads or to older kernels; a user has none of them.
HELD = ("OPENBLAS_", "OMP_", "MKL_", "GOTO_")
# On x86-64, what tells NumPy, OpenBLAS and the compiler of loops that a processor has no AVX-512.
NARROW = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "NUMBA_CPU_NAME": "x86-64-v3",
    "NUMBA_CPU_FEATURES": "+avx2,+fma",
}
_HERE = Path(__file__).parent.parent


class Contender:
    """A call that takes as long as the work in the other process, and returns its seconds.

    Args:
        kind: one of the names above, or "sampler form" of a map of this project.
        n: rows.
        d: their dimension.
        s: frequencies, or columns of a peer.
        dtype: of the rows.
        threads: for this project; linear algebra has all cores.
        checkout: of the version of this project to time.
        variables: of the environment, to be set in the process.
    """

    def __init__(
        self,
        kind: str,
        n: int,
        d: int,
        s: int,
        dtype: str = "float32",
        threads: int = 1,
        checkout: Path = _HERE,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(HELD)}
        environment |= variables
        self._process = subprocess.Popen(
            [sys.executable, __file__, json.dumps([kind, n, d, s, dtype, threads])],
            env=environment | {"PYTHONPATH": str(checkout.resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self) -> float:
        """Seconds of the work, done once."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _work(kind: str, n: int, d: int, s: int, dtype: Any, threads: int) -> Callable[[], object]:
    stream = np.random.default_rng(0)
    rows = stream.standard_normal((n, d), dtype=dtype)
    if kind in (RBF, NYSTROEM, SKETCH):
        return _of_scikit_learn(kind, rows, s)
    if kind == LANDMARKS:
        return _of_landmarks(rows, s, threads)
    if kind not in (PRODUCT, KEPT, PLAIN):
        return _ours(kind, rows, s, threads)
    frequencies, held = stream.standard_normal((d, s), dtype=dtype), np.empty((n, s), dtype)

    def plain() -> np.ndarray:
        phases = rows @ frequencies
        features = np.empty((n, 2 * s), dtype)
        np.cos(phases, out=features[:, :s])
        np.sin(phases, out=features[:, s:])
        features *= features.dtype.type(s**-0.5)
        return features

    return {
        PRODUCT: lambda: rows @ frequencies,
        KEPT: lambda: np.matmul(rows, frequencies, out=held),
        PLAIN: plain,
    }[kind]


def _of_scikit_learn(kind: str, rows: np.ndarray, s: int) -> Callable[[], object]:
    from sklearn import kernel_approximation

    kernel = {} if kind == SKETCH else {"gamma": 0.5 / rows.shape[1]}
    features = getattr(kernel_approximation, kind)(n_components=s, random_state=0, **kernel)
    features.fit(_landmarks(rows, s) if kind == NYSTROEM else rows)
    return lambda: features.transform(rows)


def _landmarks(rows: np.ndarray, s: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((s, rows.shape[1]), dtype=rows.dtype.type)


def _of_landmarks(rows: np.ndarray, s: int, threads: int) -> Callable[[], object]:
    """A map of the same kernel and landmarks as scikit-learn's."""
    from app.core.building import Building
    from app.core.maps import make_map
    from app.core.spec import MapSpec

    d = rows.shape[1]
    sampler = {"kind": "uploaded_landmarks", "landmarks": _landmarks(rows, s).tolist()}
    kernel = {"kind": "gaussian", "length_scale": d**0.5}
    members = {"input_dim": d, "dtype": rows.dtype.name, "kernel": kernel, "sampler": sampler}
    feature_map = make_map(MapSpec.model_validate_json(json.dumps(members)), Building(threads))
    return lambda: feature_map.transform(rows)


def _ours(kind: str, rows: np.ndarray, s: int, threads: int) -> Callable[[], object]:
    from app.core.maps import FourierMap, open_map
    from app.core.spec import MapSpec

    sampler, form = kind.split()
    members = {"input_dim": rows.shape[1], "s": s, "seed": 1, "form": form, "dtype": rows.dtype.name}
    kinds = {"kernel": {"kind": "gaussian", "length_scale": 10.0}, "sampler": {"kind": sampler}}
    spec = MapSpec.model_validate(members | kinds)
    feature_map = open_map(spec, FourierMap.build(spec).arrays, threads)
    return lambda: feature_map.transform(rows)


def main() -> None:
    """Answer each line with the seconds of the work."""
    work = _work(*json.loads(sys.argv[1]))
    for _ in sys.stdin:
        begun = time.perf_counter()
        work()
        print(time.perf_counter() - begun, flush=True)


if __name__ == "__main__":
    main()
