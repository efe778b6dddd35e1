"""Linear and kernel SVMs on what the service answered: exact kernels, one-hot codes, normalised Fourier features."""

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from benchmarks.data import Rows
from benchmarks.papers.cells import Bench, Cell, Found, Settings
from benchmarks.papers.sets import Split

Features = NDArray[Any] | sparse.csr_array
PREPARED = {"car": "raw", "vowel": "raw", "splice": "raw", "satimage": "raw", "letter": "scaled"}
"""How the columns of each set are taken: as they come, or between −1 and 1."""
_ROWS_PER_BLOCK = 2500


def unit(rows: Rows) -> Rows:
    """Rows of length 1."""
    scaled: Rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    return scaled


def linear_score(
    train: Features, test: Features, split: Split, cost: float, dual: bool, intercept: bool = False
) -> float:
    """Percentage of test rows that LIBLINEAR's L2-regularised squared hinge loss classifies right."""
    # The dual is the faster one for sparse columns, the primal for dense ones; tolerances are LIBLINEAR's own.
    tol = 0.1 if dual else 0.01
    model = LinearSVC(C=cost, dual=dual, tol=tol, fit_intercept=intercept, random_state=0, max_iter=1000)
    with warnings.catch_warnings():  # large C on codes that separate the classes: never the best one
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(train, split.y)
    return 100 * float(model.score(test, split.y_test))


def kernel_score(gram: Rows, of_test: Rows, split: Split, cost: float) -> float:
    """Percentage of test rows that an SVM with this kernel classifies right."""
    model = SVC(C=cost, kernel="precomputed", cache_size=1000).fit(gram, split.y)
    return 100 * float(model.score(of_test, split.y_test))


def exact_blocks(bench: Bench, data: str, kernel: dict[str, Any], split: Split, **members: Any) -> tuple[Rows, Rows]:
    """The exact kernel of the training rows, and of the test rows with them, from a map with more `members`."""
    sampler, form = ("gcws", {}) if kernel["kind"] == "gmm" else ("monte_carlo", {"form": "phase"})
    spec = {"input_dim": split.x.shape[1], "kernel": kernel, "sampler": {"kind": sampler}, "s": 1, "dtype": "float64"}
    n, parts = len(split.x), {}
    for name, rows in {"train": split.x, "test": split.x_test}.items():
        places = range(0, len(rows), _ROWS_PER_BLOCK)
        parts[name] = [bench.service.dataset(f"{data}-{name}-{n}-{i}", rows[i : i + _ROWS_PER_BLOCK]) for i in places]
    with bench.service.map(**spec, **form, **members) as its_map:
        blocks = {
            name: np.vstack([np.hstack([its_map.kernel(x, y)[1] for y in parts["train"]]) for x in parts[name]])
            for name in parts
        }
    return blocks["train"], blocks["test"]


class Method(NamedTuple):
    """A way to make features."""

    name: str
    dual: bool
    features: Callable[[Bench, Split, int, int], tuple[Features, Features]]
    """Of the rows that are trained on and tested, for so many samples and a seed."""


def gcws(bits: int, bits_of: str = "index", **members: Any) -> Method:
    """One-hot codes of b bits as columns of 0 and 1, from maps with more `members`."""

    def features(bench: Bench, split: Split, s: int, seed: int) -> tuple[Features, Features]:
        spec = {"input_dim": split.x.shape[1], "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}}
        with bench.service.map(**spec, s=s, seed=seed, dtype="float64", **members) as its_map:
            both = [its_map.codes(rows, bits, bits_of) for rows in (split.x, split.x_test)]
        return _ones(both[0], s << bits), _ones(both[1], s << bits)

    return Method(f"GCWS, b = {bits}" + ("" if bits_of == "index" else f", {bits_of}"), True, features)


def _ones(columns: NDArray[Any], width: int) -> sparse.csr_array:
    ends = np.arange(0, columns.size + 1, columns.shape[1], dtype=np.int32)  # LIBLINEAR takes no wider ones
    shape = (len(columns), width)
    return sparse.csr_array((np.ones(columns.size), columns.ravel().astype(np.int32), ends), shape=shape)


def nrff(gamma: float) -> Method:
    """Normalised random Fourier features."""

    def features(bench: Bench, split: Split, s: int, seed: int) -> tuple[Features, Features]:
        spec = {"input_dim": split.x.shape[1], "kernel": {"kind": "correlation_rbf", "gamma": gamma}, "s": s}
        spec |= {"sampler": {"kind": "monte_carlo"}, "form": "phase", "normalize": True, "dtype": "float64"}
        with bench.service.map(**spec, seed=seed) as its_map:
            return its_map.transform(split.x), its_map.transform(split.x_test)

    return Method(f"NRFF, γ = {gamma:g}", False, features)


def seconds_cell(data: str, method: Method, s: int, costs: tuple[float, ...]) -> Cell:
    """Processor seconds of training, by C, with LIBLINEAR's dual solver whichever the method."""
    settings: Settings = {"figure": "18", "data": data, "method": method.name, "s": s, "costs": list(costs)}

    def measure(bench: Bench) -> Found:
        split, seconds = bench.sets.split(data, PREPARED[data]), []
        features = method.features(bench, split, s, 0)
        for cost in costs:
            begun = time.thread_time()  # other cells are measured beside
            linear_score(*features, split, cost, dual=True)
            seconds.append(round(time.thread_time() - begun, 3))
        return {"seconds": seconds}

    return Cell(settings, measure, 30.0 if data == "satimage" else 4.0)


def hashing_cell(data: str, method: Method, s: int, seeds: int, costs: tuple[float, ...], guess: float) -> Cell:
    """Test accuracy of LIBLINEAR by seed and C."""
    settings: Settings = {"figure": "hashing", "data": data, "prepared": PREPARED[data], "method": method.name, "s": s}
    settings |= {"seeds": seeds, "costs": list(costs)}

    def measure(bench: Bench) -> Found:
        split = bench.sets.split(data, PREPARED[data])
        scores = []
        for seed in range(seeds):
            train, test = method.features(bench, split, s, seed)
            scores.append([linear_score(train, test, split, cost, method.dual) for cost in costs])
        return {"scores": scores}

    return Cell(settings, measure, guess)


def tuned_cell(
    data: str, gammas: tuple[float, ...], s: int, seeds: int, costs: tuple[float, ...], guess: float
) -> Cell:
    """As above for 8-bit codes and NRFF, C and γ chosen on a fifth of the training rows with the map of seed 0."""
    settings: Settings = {"figure": "tuned", "data": data, "prepared": PREPARED[data], "s": s, "seeds": seeds}
    settings |= {"costs": list(costs), "gammas": list(gammas)}

    def measure(bench: Bench) -> Found:
        split = bench.sets.split(data, PREPARED[data])
        held, found = split.validating(), {}
        for name, methods in (("NRFF", [nrff(gamma) for gamma in gammas]), ("GCWS", [gcws(8)])):
            best = (-1.0, 0, 0.0)
            for i, method in enumerate(methods):
                both = method.features(bench, held, s, 0)
                best = max(best, *((linear_score(*both, held, cost, method.dual), i, cost) for cost in costs))
            _, i, cost = best
            of_seeds = (methods[i].features(bench, split, s, seed) for seed in range(seeds))
            scores = [linear_score(*both, split, cost, methods[i].dual) for both in of_seeds]
            found[name] = {"scores": scores, "method": methods[i].name, "cost": cost}
        return found

    return Cell(settings, measure, guess)


def input_cell(
    data: str, fit: str, s: int, seeds: int, costs: tuple[float, ...], kernel_costs: tuple[float, ...]
) -> Cell:
    """Test accuracy on 8-bit codes by seed and C where the map itself scales raw rows, and with its exact kernel."""
    settings: Settings = {"figure": "input", "data": data, "fit": fit, "s": s, "seeds": seeds, "costs": list(costs)}
    settings |= {"kernel_costs": list(kernel_costs)}

    def measure(bench: Bench) -> Found:
        split = bench.sets.split(data, "raw")
        its_input = {"fit": fit, "dataset": bench.service.dataset(f"{data}-trained-on", split.x)}
        method, scores = gcws(8, input=its_input), []
        for seed in range(seeds):
            train, test = method.features(bench, split, s, seed)
            scores.append([linear_score(train, test, split, cost, method.dual) for cost in costs])
        gram, of_test = exact_blocks(bench, data, {"kind": "gmm"}, split, input=its_input)
        return {"scores": scores, "exact": max(kernel_score(gram, of_test, split, cost) for cost in kernel_costs)}

    return Cell(settings, measure, 25.0 * seeds if data == "satimage" else 8.0 * seeds)
