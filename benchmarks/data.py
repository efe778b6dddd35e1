"""Rows of real data as the measurements take them: prepared, split, and the length scale of their neighbours."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

Rows = NDArray[np.float64]


def standardised(rows: Rows) -> Rows:
    """Columns of mean 0 and standard deviation 1; constant columns 0."""
    spread = rows.std(axis=0)
    scaled: Rows = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return scaled


def principal(rows: Rows, columns: int = 250) -> Rows:
    """The first principal components of images from 0 to 255."""
    centred = rows / 255 - (rows / 255).mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    components: Rows = centred @ axes[:columns].T
    return components


SETS: dict[str, tuple[str, Callable[[Rows], Rows]]] = {
    "letter": ("letter.npz", standardised),
    "cpu": ("cpu.npz", standardised),
    "mnist": ("mnist5000_raw.npz", principal),
}


def neighbour_distance(rows: Rows, among: Rows | None = None) -> float:
    """Mean distance of the rows to their tenth nearest neighbours among all rows that they are of; else themselves."""
    every = rows if among is None else among
    tenth = min(10, len(every) - 1)  # the nearest of them is the row itself
    parts = [np.partition(cdist(rows[i : i + 500], every), tenth)[:, tenth] for i in range(0, len(rows), 500)]
    return float(np.concatenate(parts).mean())


def loaded(folder: Path, sets: Mapping[str, tuple[str, Callable[[Rows], Rows]]], name: str, n: int) -> Rows:
    """So many rows of a set, as it is prepared; the same each time."""
    file, prepare = sets[name]
    everything = prepare(np.load(folder / file)["X"])
    return everything[np.random.default_rng(0).permutation(len(everything))[:n]]
