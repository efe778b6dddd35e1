"""What recommendations are worth: the recommended map's error on rows not seen, against the best of all kinds.

Gaussian kernel, standardised rows, σ the mean distance to the tenth nearest neighbour or the median distance of the
rows that are recommended for. Two thirds of a set, at most 2,000 rows, are the dataset of the request; errors are of
others, at most 500, and of seeds that the request did not see. They estimate the error on as many rows as the request
measures on, as its answer does: the diagonal, where landmarks err most, counts for less the more rows there are. All
kinds of samplers are built at the same columns. `dataset` is for a request that names a dataset, `vectors` for one that
brings rows, for which nothing that learns can be recommended, and against no such kind.

Regret is by how much the recommended one's error is above that of the best kind, told in two ways. Against the least of
all mean errors: the least of two dozen is low by luck, so that this is too much. Crossed: the rival is the best on half
of the rows by half of the seeds, and both errors are read on the other rows by the other seeds, each way round. That is
nobody's luck, but a rival chosen by half of what is there may not be the best, so that this may be too little.

Run: python -m benchmarks.recommendations DIR [--sets iris …] [--budgets 64 256 1024] [--seeds 12]

DIR holds letter.npz, cpu.npz and others, each with an array X of rows; further sets come from scikit-learn. There is
a line for each case, and means and the largest come last.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter
from scipy.spatial.distance import pdist
from sklearn import datasets

from app.core.building import Building
from app.core.datasets import sample_rows
from app.core.errors import InvalidInput
from app.core.kernels.gaussian import Gaussian
from app.core.maps import family_of, make_map
from app.core.recommendations.candidates import Wanted
from app.core.recommendations.measuring import shared_out
from app.core.recommendations.trials import MOST_ROWS, recommend
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
_FEWEST_MAPS, _SECONDS_PER_KIND = 4, 2.0


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


def errors(spec: MapSpec, case: Case, exact: Rows, seeds: int) -> Rows:
    """Relative Frobenius errors (maps, 3): on half of the judged rows, on the other half, on all; few of slow maps.

    Entries off the diagonal count for as many as there are in a matrix of the rows that a request measures on.
    """
    n, of = len(case.judged), min(MOST_ROWS, len(case.learned))
    order = np.random.default_rng(0).permutation(n)
    found, begun = [], time.process_time()
    for seed in range(_FIRST_SEED, _FIRST_SEED + seeds):
        its_map = make_map(spec.model_copy(update={"seed": seed}), Building(rows=lambda *_: case.learned))
        if its_map.n_output > case.budget:
            raise InvalidInput("wider than the budget")
        missed, squares = np.square(its_map.gram(case.judged, case.judged) - exact), np.square(exact)
        found.append([_ratio(missed, squares, some, of) for some in (order[::2], order[1::2], order)])
        if len(found) >= _FEWEST_MAPS and time.process_time() - begun > _SECONDS_PER_KIND:
            break
    return np.array(found)


def _ratio(missed: Rows, squares: Rows, some: NDArray[np.intp], of: int) -> float:
    """The root of the ratio of sums over some rows and columns, as if there were `of`."""

    def total(matrix: Rows) -> float:
        diagonal = float(np.diagonal(matrix)[some].sum())
        return diagonal + (of - 1) / (len(some) - 1) * (float(matrix[np.ix_(some, some)].sum()) - diagonal)

    return float(np.sqrt(total(missed) / total(squares)))


def regrets(its: Rows, rivals: Sequence[Rows]) -> tuple[float, float]:
    """Against the least of all, and crossed; of errors as `errors` gives them."""
    least = min(float(one[:, 2].mean()) for one in (its, *rivals))

    def mean(one: Rows, place: tuple[int, int]) -> float:
        rows, seeds = place
        return float(one[seeds::2, rows].mean())

    ways = [((rows, seeds), (1 - rows, 1 - seeds)) for rows in (0, 1) for seeds in (0, 1)]
    chosen = [(min(rivals, key=lambda one: mean(one, by)), read) for by, read in ways]
    crossed = sum(mean(its, read) for _, read in chosen) / sum(mean(rival, read) for rival, read in chosen)
    return float(its[:, 2].mean()) / least - 1, crossed - 1


def brute_force(case: Case, exact: Rows, seeds: int) -> dict[str, tuple[MapSpec, Rows]]:
    """The errors of every kind that has a map of so many columns, by the text of its spec without a seed."""
    found = {}
    d = case.learned.shape[1]
    for sampler in kinds(d, case.budget):
        try:
            s = family_of(sampler).size_for(sampler, case.budget, d)
            spec = MapSpec(input_dim=d, kernel=case.kernel, sampler=sampler, s=s)
            found[spec.canonical()] = spec, errors(spec, case, exact, seeds)
        except InvalidInput:
            continue
    return found


def best_spec(case: Case, is_dataset: bool) -> tuple[MapSpec, float]:
    """The recommended spec of seed 0, and the seconds of processor that it took."""
    n = len(case.learned)
    taken = sample_rows(n, min(MOST_ROWS, n), 0)
    shares = shared_out(taken, n, 0, learns=is_dataset)
    learned_rows = len(shares.reported.learned)
    wanted = Wanted(case.budget, None, dataset="learned" if is_dataset else None, learned_rows=learned_rows)
    building = Building(rows=lambda *_: case.learned)
    begun = time.process_time()
    answer = recommend(case.learned[taken], [case.kernel], wanted, shares=shares, building=building)
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
    parser.add_argument("--seeds", type=int, default=12)
    options = parser.parse_args()
    print(
        "| data | σ | columns | rows as | recommended | its error | least of all | its error | regret | crossed | s |"
    )
    print("|" + " --- |" * 11)
    told: dict[str, list[tuple[float, float]]] = {"dataset": [], "vectors": []}
    for name in options.sets:
        learned, judged = rows_of(options.folder, name)
        for scale, of_rows in SCALES.items():
            kernel = Gaussian(kind="gaussian", length_scale=of_rows(learned[:1000].astype(np.float64)))
            exact = kernel.gram(judged.astype(np.float64), judged.astype(np.float64))
            for budget in options.budgets:
                case = Case(learned, judged, kernel, budget)
                every = brute_force(case, exact, options.seeds)
                for rows_as, found in told.items():
                    spec, seconds = best_spec(case, rows_as == "dataset")
                    if (text := spec.canonical()) not in every:
                        every[text] = spec, errors(spec, case, exact, options.seeds)
                    its = every[text][1]
                    rivals = [one for one in every.values() if rows_as == "dataset" or not learns(one[0].sampler)]
                    rival, its_least = min(rivals, key=lambda one: one[1][:, 2].mean())
                    found.append(regrets(its, [one for _, one in rivals]))
                    print(
                        f"| {name} | {scale} | {budget} | {rows_as} | {label(spec)} | {its[:, 2].mean():.3g} | "
                        f"{label(rival)} | {its_least[:, 2].mean():.3g} | {100 * found[-1][0]:.1f} % | "
                        f"{100 * found[-1][1]:.1f} % | {seconds:.1f} |",
                        flush=True,
                    )
    for rows_as, found in told.items():
        means, largest = 100 * np.mean(found, axis=0), 100 * np.max(found, axis=0)
        print(f"\n{rows_as}: mean regret {means[0]:.2f} %, largest {largest[0]:.1f} %; ", end="")
        print(f"crossed {means[1]:.2f} % and {largest[1]:.1f} %", flush=True)


if __name__ == "__main__":
    main()
