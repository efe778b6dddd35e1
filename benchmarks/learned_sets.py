"""What learned sets are worth on rows that they have not seen, and whether their warnings are right.

Relative Frobenius error of the Gram matrix of rows that are no part of the dataset, Gaussian kernel, columns
standardised, σ the median distance of two rows or the mean distance to the tenth nearest neighbour. Every set is
compared with the base that it started from, of the same s, and with moment_matching over halton.

Run: python -m benchmarks.learned_sets FOLDER RESULTS.jsonl [--only SET ...] [--s 64 256] [--learned SAMPLER ...]

FOLDER holds archives, each with an array X of rows; five sets of scikit-learn are added. RESULTS.jsonl gets a line for
every set that is built, and those that it has are not built again. At the end tables of all lines are printed.
"""

import argparse
import json
import math
import time
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn import datasets

from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps import FourierMap
from app.core.spec import MapSpec
from benchmarks.data import Rows, standardised

OF_SKLEARN = ("breast_cancer", "wine", "digits", "diabetes", "iris")
SCALES = ("median", "tenth neighbour")
FORMS = ("cos_sin", "complex")
HALTON = {"kind": "halton"}
MATCHED = "moment_matching"
STARTS: dict[str, dict[str, Any]] = {
    "halton": HALTON,
    MATCHED: {"kind": "moment_matching", "base": HALTON},
    "orthogonal": {"kind": "orthogonal"},
    "lattice": {"kind": "lattice"},
    "subsampled_grid": {"kind": "subsampled_grid", "points_per_dim": 5},
}
ON_DATA: dict[str, dict[str, Any]] = {
    f"{kind}, data": {"kind": kind, "differences": "data", "dataset": "rows"}
    for kind in ("weighted", "global_adaptive", "greedy_adaptive")
}
ON_BOX: dict[str, dict[str, Any]] = {
    f"{kind}, box": {"kind": kind, "dataset": "rows"} for kind in ("weighted", "global_adaptive", "greedy_adaptive")
} | {
    "lattice, box": {"kind": "lattice", "learn": True, "dataset": "rows"},
    "reweighted_grid": {"kind": "reweighted_grid", "dataset": "rows"},
}
STARTED_FROM = {"lattice, box": "lattice", "reweighted_grid": "subsampled_grid"}
MOST_TESTED = 1000


def sets(folder: Path) -> dict[str, Rows]:
    """All data by name."""
    found = {path.stem: np.load(path)["X"] for path in sorted(folder.glob("*.npz"))}
    return found | {name: getattr(datasets, f"load_{name}")().data for name in OF_SKLEARN}


class Data:
    """Rows to upload, rows to judge by, and the length scales of both."""

    def __init__(self, rows: Rows) -> None:
        rows = standardised(np.unique(rows.astype(np.float64), axis=0))
        mixed = rows[np.random.default_rng(0).permutation(len(rows))]
        n = min(MOST_TESTED, len(rows) // 3)
        self.tested, self.uploaded = mixed[:n], mixed[n:]
        some = self.uploaded[:500]
        distances = np.partition(cdist(some, self.uploaded), 10)
        self.scales = dict(zip(SCALES, (float(np.median(pdist(some))), float(distances[:, 10].mean())), strict=True))

    def error(self, frequencies: Rows, weights: Rows, scale: float, is_complex: bool) -> float:
        """‖K − K̂‖/‖K‖ on the rows to judge by."""
        exact = np.exp(-cdist(self.tested, self.tested, "sqeuclidean") / (2 * scale**2))
        waves = np.exp(1j * (self.tested @ frequencies.T))
        found = (waves * weights) @ waves.conj().T
        return float(np.linalg.norm(exact - (found if is_complex else found.real)) / np.linalg.norm(exact))


def measured(data: Data, case: dict[str, Any], sampler: dict[str, Any]) -> dict[str, Any]:
    """A line: error on the rows to judge by, seconds, report, and whether a warning says that the start is better."""
    scale, s, form, seed = (case[name] for name in ("scale", "s", "form", "seed"))
    kernel = {"kind": "gaussian", "length_scale": data.scales[scale]}
    members = {"input_dim": data.tested.shape[1], "kernel": kernel, "sampler": sampler, "s": s, "form": form}
    spec = MapSpec.model_validate_json(json.dumps(members | {"seed": seed, "dtype": "float64"}))
    begun = time.perf_counter()
    made = FourierMap.build(spec, Building(rows=lambda *_: data.uploaded))
    seconds, arrays = time.perf_counter() - begun, made.arrays
    error = data.error(arrays["frequencies"], arrays["weights"], data.scales[scale], form == "complex")
    warned = any("alone has the smaller" in warning for warning in made.warnings)
    return case | {"error": error, "seconds": seconds, "report": made.report, "warned": warned}


def cases(options: argparse.Namespace, name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """What to build of a set of data, the starts first."""
    samplers = STARTS | {one: {**ON_BOX, **ON_DATA}[one] for one in options.learned}
    for s, scale, form, seed in product(options.s, SCALES, options.forms, range(options.seeds)):
        for called, sampler in samplers.items():
            yield {"set": name, "scale": scale, "s": s, "form": form, "seed": seed, "sampler": called}, sampler


def key(line: dict[str, Any]) -> tuple[Any, ...]:
    """What a line is about."""
    return tuple(line[name] for name in ("set", "scale", "s", "form", "seed", "sampler"))


def tables(lines: list[dict[str, Any]]) -> None:
    """Print errors by set, how often each sampler wins, and whether its warnings are right."""
    errors = {key(line): line["error"] for line in lines}
    told = [name for name in (*STARTS, *ON_BOX, *ON_DATA) if any(line["sampler"] == name for line in lines)]
    for s, form in sorted({(line["s"], line["form"]) for line in lines}):
        print(f"\ns = {s}, {form}\n\n| data | {' | '.join(told)} |\n|{' --- |' * (1 + len(told))}")
        of = [line for line in lines if (line["s"], line["form"]) == (s, form)]
        for name, scale in dict.fromkeys((line["set"], line["scale"]) for line in of):
            row = [
                [line["error"] for line in of if key(line)[::5] == (name, one) and line["scale"] == scale]
                for one in told
            ]
            print(f"| {name}, {scale} | " + " | ".join(map(_mean, row)) + " |")
    print(
        "\n| sampler | better than its start | than moment_matching | geometric mean of the ratios | warned, and why |"
    )
    print("| --- | --- | --- | --- | --- |")
    for one in (*ON_BOX, *ON_DATA):
        of = [line for line in lines if line["sampler"] == one]
        start = STARTED_FROM.get(one, "halton")
        ratios = [(line, line["error"] / errors[(*key(line)[:5], start)]) for line in of]
        matched = [line["error"] / other for line in of if (other := errors.get((*key(line)[:5], MATCHED)))]
        if not of:
            continue
        wrong = sum(line["warned"] and ratio < 0.98 for line, ratio in ratios)
        missed = sum(not line["warned"] and ratio > 1.02 for line, ratio in ratios)
        warned = sum(line["warned"] for line in of)
        print(
            f"| {one} | {sum(ratio < 1 for _, ratio in ratios)} of {len(of)} "
            f"| {sum(ratio < 1 for ratio in matched)} of {len(matched)} "
            f"| {_geometric(ratio for _, ratio in ratios):.3f}, {_geometric(matched):.3f} "
            f"| {warned}; {wrong} where more than 2 % better, {missed} missing where more than 2 % worse |"
        )


def _mean(values: list[float]) -> str:
    """Mean and its standard error."""
    if not values:
        return ""
    spread = f" ± {np.std(values, ddof=1) / math.sqrt(len(values)):.1g}" if len(values) > 1 else ""
    return f"{np.mean(values):.3g}{spread}"


def _geometric(ratios: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log([*ratios]))))


def main() -> None:
    """Build what is missing, then print tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learned_sets", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--s", nargs="+", type=int, default=[64, 256])
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--learned", nargs="*", choices=[*ON_BOX, *ON_DATA], default=[*ON_BOX, *ON_DATA])
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.results.read_text().splitlines()] if options.results.exists() else []
    there = {key(line) for line in lines}
    for name, rows in sets(options.folder).items():
        if options.only and name not in options.only:
            continue
        data = Data(rows)
        for case, sampler in cases(options, name):
            if key(case) in there:
                continue
            try:
                line = measured(data, case, sampler)
            except InvalidInput as error:
                print(f"{key(case)}: {error.detail}", flush=True)
                continue
            lines.append(line)
            with options.results.open("a") as results:
                results.write(json.dumps(line) + "\n")
    tables(lines)


if __name__ == "__main__":
    main()
