"""Ridge and principal component regression on features that the service answered."""

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from sklearn.linear_model import Ridge

from benchmarks.data import Rows
from benchmarks.papers.cells import Bench, Cell, Found, Settings
from benchmarks.papers.gram import gaussian
from benchmarks.papers.sets import Split

REGRESSED = "cpu-unit"
"""The rows of tables 1 and 3: cpu with columns between 0 and 1."""
ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
FOLDS = 5
WIDTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""σ to choose from, over the mean distance to the tenth nearest neighbour."""
_CHOOSING_ROWS = 3000


def relative_error(predicted: Rows, values: Rows) -> float:
    """‖ŷ − y‖/‖y‖."""
    return float(np.linalg.norm(predicted - values) / np.linalg.norm(values))


def features(bench: Bench, spec: Settings, split: Split) -> tuple[NDArray[Any], NDArray[Any]]:
    """Features of the rows that are trained on and tested."""
    with bench.service.map(**spec) as its_map:
        return its_map.transform(split.x), its_map.transform(split.x_test)


def ridge_error(of_train: Rows, of_test: Rows, split: Split, alpha: float) -> float:
    """Relative test error of ridge regression with an intercept."""
    model = Ridge(alpha=alpha, solver="cholesky").fit(of_train.astype(np.float64), split.y)
    return relative_error(model.predict(of_test.astype(np.float64)), split.y_test)


def validated(columns: Rows, values: Rows) -> list[float]:
    """Relative error in cross-validation of each of `ALPHAS`; one decomposition a fold serves them all."""
    squares = np.zeros(len(ALPHAS))
    places = np.random.default_rng(0).permutation(len(values))
    for held in np.array_split(places, FOLDS):
        kept = np.setdiff1d(places, held)
        x, y = columns[kept].astype(np.float64), values[kept]
        center, level = x.mean(axis=0), y.mean()
        x -= center
        roots, axes = np.linalg.eigh(x.T @ x)
        of_values, of_held = axes.T @ (x.T @ (y - level)), (columns[held] - center) @ axes
        for i, alpha in enumerate(ALPHAS):
            predicted = of_held @ (of_values / (np.maximum(roots, 0) + alpha)) + level
            squares[i] += np.sum((predicted - values[held]) ** 2)
    errors: list[float] = np.sqrt(squares / np.sum(values**2)).tolist()
    return errors


def width_cell(data: str, s: int) -> Cell:
    """The σ and α that are best in cross-validation for Monte Carlo features of so many frequencies."""
    settings: Settings = {
        "figure": "cross-validation",
        "data": data,
        "s": s,
        "widths": list(WIDTHS),
        "alphas": list(ALPHAS),
    }

    def measure(bench: Bench) -> Found:
        split, errors = bench.sets.prepared(data), []
        some = split._replace(x=split.x[:_CHOOSING_ROWS], y=split.y[:_CHOOSING_ROWS], x_test=split.x_test[:1])
        for width in WIDTHS:
            spec = gaussian(split.x.shape[1], width * bench.sets.neighbours(data), {"kind": "monte_carlo"}, s)
            errors.append(validated(features(bench, spec, some)[0], some.y))
        best = int(np.min(errors, axis=1).argmin())
        return {"errors": errors, "width": WIDTHS[best], "sigma": WIDTHS[best] * bench.sets.neighbours(data)}

    return Cell(settings, measure, 8.0)


def alpha_cell(data: str, s: int, width: Cell) -> Cell:
    """The α that is best in cross-validation for Monte Carlo features with that σ."""
    settings: Settings = {"figure": "alpha", "data": data, "s": s, "alphas": list(ALPHAS), "width": width.settings}

    def measure(bench: Bench) -> Found:
        split = bench.sets.prepared(data)
        spec = gaussian(split.x.shape[1], bench.found(width)["sigma"], {"kind": "monte_carlo"}, s)
        with bench.service.map(**spec) as its_map:
            errors = validated(its_map.transform(split.x), split.y)
        return {"errors": errors, "alpha": ALPHAS[int(np.argmin(errors))]}

    return Cell(settings, measure, 3.0 + (s / 250) ** 2)


def component_errors(of_train: Rows, of_test: Rows, split: Split, numbers: list[int]) -> list[float]:
    """Relative test error of regression on the first principal components, for each number of them; all are columns."""
    x, mean, level = of_train.astype(np.float64), of_train.mean(axis=0, dtype=np.float64), split.y.mean()
    x -= mean
    square, values, test = x.T @ x, x.T @ (split.y - level), of_test - mean
    errors = []
    for n in numbers:
        if n < len(square):
            roots, axes = eigh(square, subset_by_index=(len(square) - n, len(square) - 1))
            slope = axes @ ((axes.T @ values) / roots)
        else:  # regression on all components is regression on the columns themselves
            slope = _solution(square, values)
        errors.append(relative_error(test @ slope + level, split.y_test))
    return errors


def _solution(square: Rows, values: Rows) -> Rows:
    """The shortest solution of least squares, from the normal equations."""
    solution: Rows
    with suppress(LinAlgError):
        factor = cho_factor(square)
        if np.diag(factor[0]).min() > 1e-5 * np.diag(factor[0]).max():
            solution = cho_solve(factor, values)
            return solution
    # Columns depend on each other: plain Sobol' points have pairs of frequencies w and −w.
    roots, axes = eigh(square)
    some = roots > 1e-10 * roots[-1]
    solution = axes[:, some] @ ((axes[:, some].T @ values) / roots[some])
    return solution
