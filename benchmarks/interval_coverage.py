"""How often the 95 % intervals of `/similarity` hold the kernel: over maps of many seeds, and pairs of real rows.

Beside them, how often the estimate is within two of its standard errors. Rows as they are, and with columns
standardised. The standard error of a share is taken over the maps, as pairs of one map share its hashes, and sets of
data those of one seed.

Run: python -m benchmarks.interval_coverage DIR [--seeds 40] [--pairs 40]

DIR holds car.npz, cpu.npz, housing.npz, letter.npz, satimage.npz, splice.npz and vowel.npz, each with an array X of
rows; two sets of scikit-learn are added.
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.maps import make_map
from app.core.spec import MapSpec
from app.services.limits import Limits
from app.services.vectors import similarity_of_vectors
from benchmarks.data import standardised

Matrix = NDArray[np.float64]

SETS = ("car", "cpu", "housing", "letter", "satimage", "splice", "vowel")
OF_SKLEARN = ("breast_cancer", "wine")
SIZES = (16, 64, 256, 1024)
ENCODINGS = {"full": Encoder(Encoding.pairs), "0-bit": Encoder(Encoding.zero_bit)} | {
    f"{bits} bit{'s' * (bits > 1)} of {of.value}": Encoder(Encoding.b_bit, bits, of)
    for of in BitsOf
    for bits in (1, 2, 4, 8)
}
_LIMITS = Limits(*[1 << 50] * len(Limits._fields))
INNER = (0.05, 0.95)
"""Kernels between which intervals must not hold too often either; beyond, counts are too coarse for that."""


class Coverage(NamedTuple):
    """Shares of the pairs, a row for each map; NaN where a map has no estimate of any pair."""

    held: Matrix
    """Whose interval holds the kernel, (maps,)."""
    inner: Matrix
    """The same of kernels in `INNER` alone."""
    within_errors: Matrix
    """Whose estimate is within two standard errors of it."""


def coverage(x: Matrix, y: Matrix, by: Encoder, s: int, seeds: range, gamma: float | None = None) -> Coverage:
    """Coverage of the min-max kernel of rows x_i and y_i, or with gamma of the RBF kernel, by maps of these seeds."""
    found = []
    document: dict[str, Any] = {"input_dim": x.shape[1], "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": s}
    for seed in seeds:
        spec = MapSpec.model_validate_json(json.dumps(document | {"seed": seed, "dtype": "float64"}))
        answer: Any = similarity_of_vectors(make_map(spec), x, y, by, gamma, _LIMITS)
        of = "" if gamma is None else "rbf_"
        exact = answer["exact" if gamma is None else "rbf_exact"]
        low, high = answer[f"{of}interval"].T
        # What the exact kernel is off by matters where an interval ends at 0 or 1.
        held = (low <= exact + 1e-12) & (exact <= high + 1e-12)
        known = np.isfinite(low)
        inner = known & (INNER[0] < exact) & (exact < INNER[1])
        error = np.abs(answer[f"{of}estimate"] - exact)
        within = error[known] <= 2 * answer[f"{of}standard_error"][known]
        found.append([one.mean() if one.size else np.nan for one in (held[known], held[inner], within)])
    return Coverage(*np.transpose(found))


def row_pairs(rows: Matrix, n: int, seed: int = 0) -> tuple[Matrix, Matrix]:
    """Rows x and y, (n, d) each, drawn at random; none all zero."""
    rows = rows[rows.any(axis=1)]
    numbers = np.random.default_rng(seed).choice(len(rows), (2, n))
    return rows[numbers[0]], rows[numbers[1]]


def _shares(every: list[Matrix]) -> str:
    """The mean over maps and sets, with its standard error, and the least of a set."""
    known = np.array([of for of in every if not np.isnan(of).all()])
    of_sets, of_maps = (np.nanmean(known, axis=axis) for axis in (1, 0))
    error = of_maps.std(ddof=1) / np.sqrt(len(of_maps))
    return f"{of_sets.mean():.3f} ± {error:.3f} (least {of_sets.min():.3f})"


def main() -> None:
    """Print a line for each encoding and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=40)
    options = parser.parse_args()
    sets = []
    for name in (*SETS, *OF_SKLEARN):
        archive = options.directory / f"{name}.npz"
        rows = np.load(archive)["X"] if name in SETS else getattr(datasets, f"load_{name}")().data
        rows = rows.astype(np.float64)
        sets += [row_pairs(rows, options.pairs), row_pairs(standardised(rows), options.pairs)]
    print("codes | s | interval holds the kernel | of kernels from .05 to .95 | within two standard errors")
    cases: list[tuple[str, Encoder, float | None]] = [(name, by, None) for name, by in ENCODINGS.items()]
    cases += [(f"RBF, gamma {gamma:g}, full", ENCODINGS["full"], gamma) for gamma in (1.0, 5.0)]
    for name, by, gamma in cases:
        for s in SIZES:
            found = [coverage(x, y, by, s, range(options.seeds), gamma) for x, y in sets]
            shares = [_shares([getattr(one, of) for one in found]) for of in Coverage._fields]
            print(" | ".join([name, str(s), *shares]), flush=True)


if __name__ == "__main__":
    main()
