"""Gram errors and box discrepancies of maps, as several papers measure them."""

from typing import Any

import numpy as np

from benchmarks.papers.cells import Bench, Cell, Found, Settings

SEQUENCES: dict[str, dict[str, Any]] = {
    "Halton": {"kind": "halton", "scramble": "reverse_radix"},
    "Sobol'": {"kind": "sobol"},
    "lattice": {"kind": "lattice"},
    "digital net": {"kind": "digital_net"},
    "MC": {"kind": "monte_carlo"},
    "Halton, plain": {"kind": "halton", "scramble": "none"},
    "Sobol', plain": {"kind": "sobol", "scramble": False},
    "lattice, plain": {"kind": "lattice", "shift": False},
    "digital net, plain": {"kind": "digital_net", "scramble": False},
    "moment matching": {"kind": "moment_matching", "base": {"kind": "monte_carlo"}},
    "moment matching over Sobol'": {"kind": "moment_matching", "base": {"kind": "sobol"}},
    "antithetic": {"kind": "antithetic"},
    "scrambled Halton": {"kind": "halton"},
}
"""The samplers by the names that pictures and tables have for them. Halton is the papers' deterministic scrambling."""
ONE_SEED = frozenset(name for name in SEQUENCES if name.endswith("plain")) | {"Halton"}
"""Sequences that no seed changes."""
MEASURES = {
    "frobenius": "relative_frobenius",
    "spectral": "relative_spectral",
    "largest": "max_abs",
    "mean": "mean_square",
}


def seeds_of(sampler: str, seeds: int) -> int:
    """How many maps to measure."""
    return 1 if sampler in ONE_SEED else seeds


def gram_cell(
    figure: str,
    data: str,
    sampler: str,
    s: int,
    seeds: int,
    *,
    rows: int,
    wide: float = 1.0,
    form: str = "complex",
    estimators: tuple[str, ...] = ("map",),
) -> Cell:
    """Errors of the Gram matrix of a sample of prepared rows, for each of some seeds.

    Args:
        figure: what it is for.
        data: name of prepared rows.
        sampler: one of `SEQUENCES`.
        s: frequencies.
        seeds: of the map, 0 and on.
        rows: how many there are.
        wide: σ over the mean distance to the tenth nearest neighbour.
        form: of the map.
        estimators: of the diagnostic.
    """
    settings: Settings = {
        "figure": figure,
        "data": data,
        "sampler": sampler,
        "s": s,
        "seeds": seeds_of(sampler, seeds),
        "rows": rows,
        "wide": wide,
        "form": form,
        "estimators": list(estimators),
    }
    guess = (rows / 2000) ** 2 * (0.7 + s / 800) * settings["seeds"]
    return Cell(settings, lambda bench: _gram_errors(bench, settings), guess)


def _gram_errors(bench: Bench, settings: Settings) -> Found:
    sample = bench.sets.sample(settings["data"], settings["rows"])
    dataset = bench.service.dataset(f"{settings['data']}-{settings['rows']}", sample)
    sigma = settings["wide"] * bench.sets.neighbours(settings["data"])
    found: Found = {name: {measure: [] for measure in MEASURES} for name in settings["estimators"]}
    for seed in range(settings["seeds"]):
        spec = gaussian(sample.shape[1], sigma, SEQUENCES[settings["sampler"]], settings["s"], seed, settings["form"])
        with bench.service.map(**spec) as its_map:
            body = {"dataset": dataset, "seeds": 0, "estimators": settings["estimators"]}
            answer = its_map.diagnostic("gram", **body)["estimators"]
        for name, figures in answer.items():
            for measure, member in MEASURES.items():
                found[name][measure].append(figures[member])
    return found | {"sigma": sigma}


def gaussian(d: int, sigma: float, sampler: dict[str, Any], s: int, seed: int = 0, form: str = "cos_sin") -> Settings:
    """The spec of a Gaussian kernel's map."""
    kernel = {"kind": "gaussian", "length_scale": sigma}
    return {"input_dim": d, "kernel": kernel, "sampler": sampler, "s": s, "seed": seed, "form": form}


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean, and its standard error; 0 where there is one value, which then no seed changes."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0
