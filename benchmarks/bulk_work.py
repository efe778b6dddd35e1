"""A million rows turned into features, in a process of its own: by plain NumPy, or through the client of a service.

Run as a script it does the work once for every line that comes in, into a new memory map, and answers with the seconds.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

PLAIN, CLIENT = "plain NumPy", "FeatureMap"
COLUMNS = 512
S = COLUMNS // 2
LENGTH_SCALE = 7.0
# Rows whose phases stay in the cache.
_BLOCK = 2048


def plain(rows: np.ndarray, out: np.ndarray) -> None:
    """The features by NumPy, block by block, which is faster than at once."""
    frequencies = np.random.default_rng(1).standard_normal((rows.shape[1], S), dtype=np.float32)
    frequencies /= LENGTH_SCALE
    for start in range(0, len(rows), _BLOCK):
        phases, block = rows[start : start + _BLOCK] @ frequencies, out[start : start + _BLOCK]
        np.cos(phases, out=block[:, :S])
        np.sin(phases, out=block[:, S:])
        block *= np.float32(S**-0.5)


def through_client(rows: np.ndarray, url: str) -> Callable[[np.ndarray, np.ndarray], object]:
    """The features of a map of the same kind, by its service."""
    from bochner_client import FeatureMap  # which takes memory, and plain NumPy does without

    fitted = FeatureMap(sampler="monte_carlo", s=S, length_scale=LENGTH_SCALE, url=url).fit(rows[:10])
    return fitted.transform


def main() -> None:
    """Answer each line with the seconds of the work."""
    kind, file, url = sys.argv[1:]
    rows: np.ndarray = np.load(file, mmap_mode="r")
    work = plain if kind == PLAIN else through_client(rows, url)
    target = Path(file).with_name(f"{kind}.npy")
    for _ in sys.stdin:
        out = np.lib.format.open_memmap(target, "w+", np.float32, (len(rows), COLUMNS))
        begun = time.perf_counter()
        work(rows, out)
        print(time.perf_counter() - begun, flush=True)
        del out
        target.unlink()


if __name__ == "__main__":
    main()
