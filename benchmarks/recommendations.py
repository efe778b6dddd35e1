"""What recommendations are worth: the recommended map's error on rows not seen, against the best of all kinds.

Gaussian kernel, standardised rows, σ the mean distance to the tenth nearest neighbour or the median distance of the
rows that are recommended for. Two thirds of a set, at most 2,000 rows, are the dataset of the request; errors are of
others, at most 500, and of seeds that the request did not see. All kinds of samplers are built at the same columns:
regret is by how much the recommended one's error is above the least of theirs. `dataset` is for a request that names a
dataset, `vectors` for one that brings rows, for which nothing that learns can be recommended, and against no such kind.

Run: python -m benchmarks.recommendations DIR [--sets iris …] [--budgets 64 256 1024] [--seeds 10]

DIR holds letter.npz, cpu.npz and others, each with an array X of rows; further sets come from scikit-learn. There is
a line for each case, and means and the largest come last.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from scipy.spatial.distance import pdist
from sklearn import datasets

from app.core.building import Building
from app.core.datasets import sampled
from app.core.errors import InvalidInput
from app.core.kernels.gaussian import Gaussian
from app.core.maps import family_of, made
from app.core.recommendations.candidates import Wanted
from app.core.recommendations.held_out import shared_out
from app.core.recommendations.trials import MOST_ROWS, recommended
from app.core.spec import MapSpec, Sampler
from benchmarks.data import neighbour_distance, standardised

Rows = NDArray[np.float64]

MADE: dict[str, Callable[[], Any]] = {
    "breast_cancer": lambda: datasets.load_breast_cancer().data,
    "wine": lambda: datasets.load_wine().data,
    "digits": lambda: datasets.load_digits().data,
    "diabetes": lambda: datasets.load_diabetes().data,
    "iris": lambda: datasets.load_iris().data,
    "classification": lambda: datasets.make_classification(1500, 20, random_state=0)[0],
    "friedman": lambda: datasets.make_friedman1(1500, 10, random_state=0)[0],
    "moons": lambda: datasets.make_moons(1500, noise=0.1, random_state=0)[0],
    "blobs": lambda: datasets.make_blobs(1500, 8, centers=6, random_state=0)[0],
    "swiss_roll": lambda: datasets.make_swiss_roll(1500, random_state=0)[0],
}
FILES = {name: name for name in ("letter", "cpu", "satimage", "car", "housing", "splice", "vowel")}
FILES["mnist"] = "mnist5000_raw"
SCALES: dict[str, Callable[[Rows], float]] = {
    "tenth neighbour": neighbour_distance,
    "median": lambda rows: float(np.median(pdist(rows))),
}
POINTS = ("monte_carlo", "antithetic", "latin_hypercube", "halton", "sobol", "lattice", "digital_net", "orthogonal")
SELECTIONS = ("rp_cholesky", "k_means", "leverage", "uniform")
_FIRST_SEED = 1000
_SECONDS_PER_KIND = 5.0


class Case(NamedTuple):
    """What is recommended for, and the rows to judge by."""

    learned: NDArray[np.float32]
    judged: NDArray[np.float32]
    kernel: Gaussian
    budget: int


def kinds(input_dim: int, budget: int) -> Iterator[Sampler]:
    """Samplers of every kind that makes a map of its own; those that learn, from the dataset "learned"."""
    read: TypeAdapter[Sampler] = TypeAdapter(Sampler)
    every: list[dict[str, Any]] = [{"kind": kind} for kind in POINTS]
    every += [{"kind": "moment_matching", "base": {"kind": kind}} for kind in POINTS]
    every += [{"kind": "structured_orthogonal", "radii": radii} for radii in ("stratified", "independent")]
    every += [{"kind": "subsampled_grid", "points_per_dim": 5}]
    nodes = int((budget // 2) ** (1 / input_dim) + 1e-9)
    every += [{"kind": "dense_grid", "points_per_dim": nodes}] if nodes > 1 else []
    every += [{"kind": "sparse_grid", "level": level} for level in (1, 2, 3, 4)]
    every += [{"kind": "polynomially_exact", "degree": degree} for degree in (2, 3, 4)]
    every += [{"kind": "reweighted_grid", "points_per_dim": points, "dataset": "learned"} for points in (3, 5, 8)]
    every += [{"kind": "landmarks", "selection": selection, "dataset": "learned"} for selection in SELECTIONS]
    every += [{"kind": "weighted", "dataset": "learned", "differences": "data"}]
    if budget <= 64:  # they take minutes beyond
        every += [{"kind": "weighted", "dataset": "learned"}, {"kind": "lattice", "learn": True, "dataset": "learned"}]
        every += [
            {"kind": kind, "dataset": "learned", "differences": "data"}
            for kind in ("global_adaptive", "greedy_adaptive")
        ]
    return map(read.validate_python, every)


def learns(sampler: Sampler) -> bool:
    """Whether it is nothing for bare vectors."""
    return sampler.learned_from is not None


def label(spec: MapSpec) -> str:
    """A name for the table."""
    sampler = spec.sampler.model_dump()
    words = [
        sampler[name] for name in ("differences", "selection", "points_per_dim", "level", "degree") if sampler.get(name)
    ]
    base = f"over {sampler['base']['kind']}" if sampler.get("base") else ""
    return " ".join(map(str, [sampler["kind"], *words, base])).strip()


def error(spec: MapSpec, case: Case, exact: Rows, seeds: int) -> float:
    """Mean relative Frobenius error over seeds; over fewer of maps that take long."""
    found, begun = [], time.perf_counter()
    for seed in range(_FIRST_SEED, _FIRST_SEED + seeds):
        its_map = made(spec.model_copy(update={"seed": seed}), Building(rows=lambda *_: case.learned))
        if its_map.n_output > case.budget:
            raise InvalidInput("wider than the budget")
        found.append(np.linalg.norm(its_map.gram(case.judged, case.judged) - exact) / np.linalg.norm(exact))
        if len(found) >= 3 and time.perf_counter() - begun > _SECONDS_PER_KIND:
            break
    return float(np.mean(found))


def brute_force(case: Case, exact: Rows, seeds: int) -> dict[str, tuple[MapSpec, float]]:
    """The error of every kind that has a map of so many columns, by the text of its spec without a seed."""
    found = {}
    d = case.learned.shape[1]
    for sampler in kinds(d, case.budget):
        try:
            s = family_of(sampler).size_for(sampler, case.budget, d)
            spec = MapSpec(input_dim=d, kernel=case.kernel, sampler=sampler, s=s)
            found[spec.canonical()] = spec, error(spec, case, exact, seeds)
        except InvalidInput:
            continue
    return found


def best_spec(case: Case, is_dataset: bool) -> tuple[MapSpec, float]:
    """The recommended spec of seed 0, and the seconds of processor that it took."""
    n = len(case.learned)
    taken = sampled(n, min(MOST_ROWS, n), 0)
    shares = shared_out(taken, n, 0, learns=is_dataset)
    learned_rows = len(shares.reported.learned)
    wanted = Wanted(case.budget, None, dataset="learned" if is_dataset else None, learned_rows=learned_rows)
    building = Building(rows=lambda *_: case.learned)
    begun = time.process_time()
    answer = recommended(case.learned[taken], [case.kernel], wanted, shares=shares, building=building)
    return MapSpec.model_validate_json(json.dumps(answer["best"])), time.process_time() - begun


def rows_of(folder: Path, name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The rows of a set that are recommended for, and those to judge by."""
    everything = MADE[name]() if name in MADE else np.load(folder / f"{FILES[name]}.npz")["X"]
    rows = standardised(np.asarray(everything, np.float64))
    mixed = np.random.default_rng(0).permutation(len(rows))
    n = min(2 * len(rows) // 3, 2000)
    return rows[mixed[:n]].astype(np.float32), rows[mixed[n : n + 500]].astype(np.float32)


def main() -> None:
    """Print a line for each case, and a summary."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="+", default=[*MADE, *FILES], choices=[*MADE, *FILES])
    parser.add_argument("--budgets", nargs="+", type=int, default=[64, 256, 1024])
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    print("| data | σ | columns | rows as | recommended | its error | best of all | its error | regret | seconds |")
    print("|" + " --- |" * 10)
    regrets: dict[str, list[float]] = {"dataset": [], "vectors": []}
    for name in options.sets:
        learned, judged = rows_of(options.folder, name)
        for scale, of_rows in SCALES.items():
            kernel = Gaussian(kind="gaussian", length_scale=of_rows(learned[:1000].astype(np.float64)))
            exact = kernel.gram(judged.astype(np.float64), judged.astype(np.float64))
            for budget in options.budgets:
                case = Case(learned, judged, kernel, budget)
                every = brute_force(case, exact, options.seeds)
                for rows_as in regrets:
                    spec, seconds = best_spec(case, rows_as == "dataset")
                    text = spec.canonical()
                    its = every[text][1] if text in every else error(spec, case, exact, options.seeds)
                    rivals = [one for one in every.values() if rows_as == "dataset" or not learns(one[0].sampler)]
                    rival, least = min(rivals, key=lambda one: one[1])
                    regret = its / min(its, least) - 1
                    regrets[rows_as].append(regret)
                    print(
                        f"| {name} | {scale} | {budget} | {rows_as} | {label(spec)} | {its:.3g} | {label(rival)} | "
                        f"{least:.3g} | {100 * regret:.1f} % | {seconds:.1f} |",
                        flush=True,
                    )
    for rows_as, found in regrets.items():
        print(f"\n{rows_as}: mean regret {100 * np.mean(found):.2f} %, largest {100 * max(found):.1f} %", flush=True)


if __name__ == "__main__":
    main()
