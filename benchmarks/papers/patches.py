"""Digits with a kernel of all their patches, and how well a linear model on its features tells them apart."""

import warnings
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.kernel_ridge import KernelRidge

from benchmarks.data import Rows
from benchmarks.papers.cells import Bench, Cell, Found, Settings
from benchmarks.papers.sets import Split

PATCHES, PATCH_WIDTH = (28, 5), 1.5
PER_PATCH = (1, 2, 4, 8, 16, 25)
GRIDS: dict[str, dict[str, Any]] = {
    "RFF": {"kind": "monte_carlo"},
    "subsampled grid": {"kind": "subsampled_grid", "points_per_dim": 11},
    "sparse grid": {"kind": "sparse_grid", "level": 1},
}
ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Ridge parameters to choose from, in units of the mean of the Gram matrix's diagonal."""
_TRAIN = 3000


def _images(bench: Bench, side: int) -> Split:
    """Rows of grey levels from 0 to 1; smaller pictures are corners of the whole."""
    raw = bench.sets.raw("mnist")
    both = np.vstack([raw.x, raw.x_test]).reshape(-1, 28, 28)[:, :side, :side].reshape(-1, side * side) / 255
    classes = np.concatenate([raw.y, raw.y_test])
    mixed = np.random.default_rng(0).permutation(len(both))
    n = min(_TRAIN, len(both) * 3 // 5)
    return Split(both[mixed[:n]], classes[mixed[:n]], both[mixed[n:]], classes[mixed[n:]])


def _anova(side: int, patch: int) -> Settings:
    windows = {"image_shape": [side, side], "patch_shape": [patch, patch]}
    return {"input_dim": side * side, "kernel": {"kind": "anova", "windows": windows, "length_scale": PATCH_WIDTH}}


def accuracy_cell(name: str, per_patch: int, seeds: int, patches: tuple[int, int], data: str) -> Cell:
    """Test accuracy of ridge classification on features of all patches, for each of some seeds."""
    settings: Settings = {"figure": "2a", "data": data, "method": name, "per_patch": per_patch, "seeds": seeds}
    settings |= {"patches": list(patches), "width": PATCH_WIDTH}
    frequencies = (patches[0] - patches[1] + 1) ** 2 * per_patch

    def measure(bench: Bench) -> Found:
        split, found = _images(bench, patches[0]), []
        spec = _anova(*patches) | {"sampler": GRIDS[name]} | ({} if name == "sparse grid" else {"s": frequencies})
        for seed in range(seeds):
            with bench.service.map(**spec, seed=seed) as its_map:
                train, test = its_map.transform(split.x), its_map.transform(split.x_test)
                features = its_map.record["n_output"]
            found.append(_accuracy((train @ train.T).astype(np.float64), (test @ train.T).astype(np.float64), split))
        return {"accuracies": found, "features": features}

    return Cell(settings, measure, 5.0 + 0.45 * per_patch * seeds)


def exact_cell() -> Cell:
    """Test accuracy with the exact kernel."""
    settings: Settings = {"figure": "2a", "data": "mnist", "method": "exact kernel", "width": PATCH_WIDTH}

    def measure(bench: Bench) -> Found:
        split = _images(bench, PATCHES[0])
        parts = np.array_split(np.vstack([split.x, split.x_test]), 10)
        names = [bench.service.dataset(f"images-{i}", part) for i, part in enumerate(parts)]
        trained = bench.service.dataset("images", split.x)
        with bench.service.map(**_anova(*PATCHES), sampler=GRIDS["RFF"], s=576, dtype="float64") as its_map:
            exact = np.vstack([its_map.kernel(name, trained)[1] for name in names])
        return {"accuracies": [_accuracy(exact[: len(split.x)], exact[len(split.x) :], split)]}

    return Cell(settings, measure, 140.0)


def _accuracy(gram: Rows, of_test: Rows, split: Split) -> float:
    """Percentage of test rows that ridge classification gets right; its parameter is chosen on a fifth of the rest."""
    targets = (split.y[:, None] == np.unique(split.y)).astype(np.float64) * 2 - 1
    mixed = np.random.default_rng(1).permutation(len(gram))
    held, kept = np.split(mixed, [len(gram) // 5])
    unit = float(np.diag(gram).mean())

    def right(train: Any, test: Rows, classes: Any, alpha: float) -> float:
        model = KernelRidge(alpha=alpha * unit, kernel="precomputed")
        with warnings.catch_warnings():  # the least parameters are too small, and not chosen then
            warnings.simplefilter("ignore", LinAlgWarning)
            model.fit(gram[np.ix_(train, train)], targets[train])
        return 100 * float(np.mean(np.unique(split.y)[model.predict(test).argmax(axis=1)] == classes))

    best = max(ALPHAS, key=lambda alpha: right(kept, gram[np.ix_(held, kept)], split.y[held], alpha))
    return right(np.arange(len(gram)), of_test, split.y_test, best)
