"""The data sets that the papers' experiments run on, prepared as the pages say."""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import special_ortho_group

from benchmarks.data import Rows, neighbour_distance, principal, standardised

FILES = {"mnist": "mnist5000_raw"}
"""The file of a set where it has another name."""
_MADE_ROWS, _MADE_COLUMNS, _NOISE = 10_000, 500, 0.2


class Split(NamedTuple):
    """Rows that are trained on, rows that are tested, and their values or classes."""

    x: Rows
    y: NDArray[Any]
    x_test: Rows
    y_test: NDArray[Any]

    def validating(self) -> "Split":
        """A random fifth of the training rows in the place of the test rows."""
        mixed = np.random.default_rng(0).permutation(len(self.x))
        held, kept = np.split(mixed, [len(mixed) // 5])
        return Split(self.x[kept], self.y[kept], self.x[held], self.y[held])


class Sets:
    """Data of a folder of archives, each with X, y, idx_train and idx_test.

    Args:
        folder: of the archives.
        most: rows of each half of a split at most, to see that everything runs.
    """

    def __init__(self, folder: Path, most: int | None = None) -> None:
        self._folder, self.most = folder, most
        self.split = cache(self._split)
        self.prepared = cache(self._prepared)
        self.sample = cache(self._sample)
        self.neighbours = cache(self._neighbours)

    def raw(self, name: str) -> Split:
        """A set as its file has it."""
        if name == "lr500":
            return _made(self.most)
        with np.load(self._folder / f"{FILES.get(name, name)}.npz") as file:
            x, y, train, test = file["X"].astype(np.float64), file["y"], file["idx_train"], file["idx_test"]
        train, test = train[: self.most], test[: self.most]
        return Split(x[train], y[train], x[test], y[test])

    def _split(self, name: str, how: str) -> Split:
        """A set as it comes, `raw`, or its columns `scaled` to [−1, 1] or `standardised`, over the training rows.

        `renumbered` rows have 3 and 4 exchanged, which for splice are two of the four nucleotides.
        """
        split = self.raw(name)
        if how == "raw":
            return split
        if how == "renumbered":
            return split._replace(**{part: _exchanged(getattr(split, part)) for part in ("x", "x_test")})
        if how == "standardised":
            mean, spread = split.x.mean(axis=0), split.x.std(axis=0)
            wide = np.where(spread > 0, spread, 1)
            return split._replace(x=(split.x - mean) / wide, x_test=(split.x_test - mean) / wide)
        low, high = split.x.min(axis=0), split.x.max(axis=0)
        wide = np.where(high > low, high - low, 1)
        return split._replace(x=2 * (split.x - low) / wide - 1, x_test=2 * (split.x_test - low) / wide - 1)

    def _prepared(self, name: str) -> Split:
        """A set standardised, as it comes (cpu-raw), from 0 to 1 (cpu-unit), or in principal components (mnist-250).

        These may be turned at random (mnist-300-turned), so that no column is the first.
        """
        file, columns, turned = (*name.split("-"), "", "")[:3]
        split = self.raw(file)
        if columns == "raw":
            return split
        both = np.vstack([split.x, split.x_test])
        if columns == "unit":
            rows = (both - both.min(axis=0)) / np.maximum(np.ptp(both, axis=0), 1e-300)
        else:
            rows = principal(both, int(columns)) if columns else standardised(both)
        if turned:
            rows = rows @ special_ortho_group.rvs(rows.shape[1], random_state=0)
        return split._replace(x=rows[: len(split.x)], x_test=rows[len(split.x) :])

    def _sample(self, name: str, n: int) -> Rows:
        """So many of its prepared rows, trained on and tested; the same each time."""
        split = self.prepared(name)
        both = np.vstack([split.x, split.x_test])
        return both[np.random.default_rng(0).permutation(len(both))[:n]]

    def _neighbours(self, name: str) -> float:
        """Mean distance of 2,000 prepared rows to their tenth nearest neighbours among all."""
        split = self.prepared(name)
        return neighbour_distance(self.sample(name, 2000), np.vstack([split.x, split.x_test]))


def _exchanged(rows: Rows) -> Rows:
    return np.select([rows == 3, rows == 4], [4.0, 3.0], rows)


def _made(most: int | None) -> Split:
    """Normal rows of random correlation and noisy linear values, after the moment-matching paper's LR500."""
    rng = np.random.default_rng(500)
    mixing = rng.standard_normal((_MADE_COLUMNS, _MADE_COLUMNS))
    covariance = mixing @ mixing.T
    spread = np.sqrt(np.diag(covariance))
    root = np.linalg.cholesky(covariance / np.outer(spread, spread))
    n = _MADE_ROWS if most is None else 2 * most
    rows = rng.standard_normal((n, _MADE_COLUMNS)) @ root.T
    values = rows @ rng.standard_normal(_MADE_COLUMNS)
    values += _NOISE * values.std() * rng.standard_normal(n)
    half = n * 4 // 5
    return Split(rows[:half], values[:half], rows[half:], values[half:])
