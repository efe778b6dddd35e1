"""Linearized GMM kernels and normalized random Fourier features (Li, 2017)."""

import numpy as np

from benchmarks.papers import hashing_pages, printed
from benchmarks.papers.cells import Bench, Cell, Found, Kept, Settings
from benchmarks.papers.classifiers import PREPARED, gcws, hashing_cell, input_cell, nrff, seconds_cell, tuned_cell
from benchmarks.papers.kernel_svms import KINDS, kernel_cell, preparation_cell, splits_cell
from benchmarks.papers.pages import Page

TITLE = "GMM kernels and normalised random Fourier features"
NAME = "min-max-hashing"
CORRELATIONS = tuple(float(rho) for rho in np.round(np.linspace(-0.9, 0.99, 22), 3))
GAMMAS_OF_VARIANCE, SIMULATED = (1.0, 5.0, 10.0), ((0.5, 1.0), (0.5, 5.0), (0.9, 5.0))
SAMPLES = (4, 10, 32, 100, 316)
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_FINE = [0.001, 0.01, *np.arange(0.1, 2.05, 0.1), 2.5, *range(3, 21), *range(25, 51, 5), *range(60, 101, 10)]
GAMMAS = (*map(float, np.round(_FINE, 3)), 120.0, 150.0, 200.0, 300.0, 500.0, 1000.0)
"""The 58 of the paper."""
FEWER_GAMMAS = (1.0, 2.0, 5.0, 11.0, 20.0, 45.0, 100.0, 200.0, 500.0)
HASHES = (16, 64, 128, 256, 1024)
LINEAR_COSTS, INPUT_COSTS = (0.01, 0.1, 1.0, 10.0), (0.001, 0.01, 0.1, 1.0)
SECONDS_COSTS = (0.1, 1.0, 10.0, 100.0)
FITS, PREPARATIONS = ("standardize", "max_abs"), ("raw", "scaled", "standardised")
SMALL = ("car", "vowel", "splice", "satimage")


def cells(tiny: bool = False) -> list[Cell]:
    """All cells of the paper; the least of each kind if `tiny`."""
    if tiny:
        made = [_ratio_cell(5.0), _simulation_cell(0.5, 5.0, (4,), 20), _collisions_cell("car", 8, 2)]
        made += [kernel_cell("car", kind, (1.0,), (1.0,), None) for kind in KINDS]
        made += [preparation_cell("car", "standardised", 1.0, (1.0,)), splits_cell("car", 1.0, (1.0,), 2)]
        made += [hashing_cell("car", method, 16, 1, (1.0,), 1.0) for method in (gcws(4), nrff(1.0))]
        made += [seconds_cell("car", gcws(8), 16, (1.0,))]
        return [
            *made,
            tuned_cell("car", (1.0,), 16, 1, (1.0,), 1.0),
            input_cell("car", "max_abs", 16, 1, (1.0,), (1.0,)),
        ]
    made = [_ratio_cell(gamma) for gamma in GAMMAS_OF_VARIANCE]
    made += [_simulation_cell(rho, gamma, SAMPLES, 4000) for rho, gamma in SIMULATED]
    made += [_collisions_cell(data, 1024, 8) for data in PREPARED]
    made += [
        input_cell(data, fit, 1024, seeds, INPUT_COSTS, COSTS)
        for data, seeds in (("car", 5), ("satimage", 3))
        for fit in FITS
    ]
    made += [
        preparation_cell(data, how, printed.KERNEL_SVMS[data][2], COSTS)
        for data in SMALL
        for how in (*PREPARATIONS, *(("renumbered",) if data == "splice" else ()))
    ]
    made += [splits_cell(data, printed.KERNEL_SVMS[data][2], (1.0, 10.0, 100.0), 20) for data in SMALL[:3]]
    for data in SMALL:
        gammas = FEWER_GAMMAS if data == "satimage" else GAMMAS
        made += [kernel_cell(data, kind, COSTS, gammas if kind == "RBF" else (1.0,), None) for kind in KINDS]
        made += _hashing_cells(data, HASHES, 2 if data == "satimage" else 5)
        made += [seconds_cell(data, nrff(printed.KERNEL_SVMS[data][2]), s, SECONDS_COSTS) for s in (128, 256)]
        made += [seconds_cell(data, gcws(8), s, SECONDS_COSTS) for s in (128, 256)]
        made.append(tuned_cell(data, (0.5, 1.0, 2.0, 5.0, 15.0, 45.0), 256, 5, (0.1, 1.0, 10.0, 100.0, 1000.0), 30.0))
    return [*made, *_letter_cells()]


def _letter_cells() -> list[Cell]:
    """Letter, whose 15,000 rows take long: fewer seeds, and no C to choose from where the cells are largest."""
    made = [kernel_cell("letter", kind, COSTS, (1.0,), None) for kind in KINDS[:2]]
    made += [
        kernel_cell("letter", kind, (1.0, 10.0, 100.0), gammas, None)
        for kind, gammas in (("GMM", (1.0,)), ("RBF", (5.0, 11.0, 20.0)))
    ]
    for s, seeds in ((16, 10), (64, 3), (128, 2), (256, 2)):
        bits = (1, 2, 4, 8) if s < 128 else (4, 8)
        made += [hashing_cell("letter", gcws(one), s, seeds, (0.01, 0.1, 1.0), 0.1 * s * seeds) for one in bits]
        made.append(hashing_cell("letter", nrff(11.0), s, seeds, (1.0, 10.0), 0.15 * s * seeds))
    for method, cost in ((gcws(8), 0.1), (nrff(11.0), 10.0)):
        made.append(hashing_cell("letter", method, 1024, 1, (cost,), 50.0))
    return [*made, tuned_cell("letter", (0.5, 1.0, 2.0), 64, 2, (0.1, 1.0, 100.0, 1000.0), 60.0)]


def _hashing_cells(data: str, hashes: tuple[int, ...], seeds: int) -> list[Cell]:
    scale = {"car": 0.7, "vowel": 0.1, "splice": 0.4, "satimage": 2.5}[data] * seeds
    gamma = printed.KERNEL_SVMS[data][2]
    made = []
    for s in hashes:
        # One bit is enough to try once where there is no sign to tell; bits of pairs are not the paper's.
        bits = (1, 2, 4, 8) if data == "vowel" or s == 64 else (2, 4, 8)
        methods = [*(gcws(one) for one in bits), *([gcws(8, "pair")] if s in (64, 256) else []), nrff(gamma)]
        made += [hashing_cell(data, method, s, seeds, LINEAR_COSTS, 0.01 * scale * s) for method in methods]
    return made


def _ratio_cell(gamma: float) -> Cell:
    """Closed-form variances of RFF and NRFF times the number of samples, by correlation."""
    settings: Settings = {"figure": "variances", "gamma": gamma, "correlations": list(CORRELATIONS)}

    def measure(bench: Bench) -> Found:
        with bench.service.map(**_fourier(16, gamma, 64, normalize=False)) as its_map:
            answer = its_map.diagnostic("variance", correlations=list(CORRELATIONS), repeats=2)
        return {name: [64 * pair["closed_forms"][name] for pair in answer["pairs"]] for name in ("rff", "nrff")}

    return Cell(settings, measure)


def _fourier(d: int, gamma: float, s: int, normalize: bool) -> dict[str, object]:
    kernel = {"kind": "correlation_rbf", "gamma": gamma}
    spec = {"input_dim": d, "kernel": kernel, "sampler": {"kind": "monte_carlo"}, "s": s, "form": "phase"}
    return spec | {"normalize": normalize, "dtype": "float64"}


def _simulation_cell(rho: float, gamma: float, samples: tuple[int, ...], repeats: int) -> Cell:
    """Mean square errors of RFF and NRFF over maps of other seeds, and their closed forms, by number of samples."""
    settings: Settings = {
        "figure": "simulation",
        "rho": rho,
        "gamma": gamma,
        "samples": list(samples),
        "repeats": repeats,
    }

    def measure(bench: Bench) -> Found:
        found: Found = {"RFF": [], "NRFF": []}
        for s in samples:
            for name in found:
                with bench.service.map(**_fourier(8, gamma, s, normalize=name == "NRFF")) as its_map:
                    answer = its_map.diagnostic("variance", correlations=[rho], repeats=repeats)["pairs"][0]
                bias = answer["empirical"]["mean"] - answer["exact"]
                error = answer["empirical"]["variance"] + bias**2
                theory = answer["closed_forms"]["nrff" if name == "NRFF" else "rff"]
                found[name].append([error, answer["empirical"]["standard_error"], theory])
        return found

    return Cell(settings, measure, 35.0)


def _collisions_cell(data: str, s: int, seeds: int) -> Cell:
    """Bias of full, 0-bit and b-bit estimates of the GMM kernel over pairs of rows, for each of some seeds."""
    settings: Settings = {"figure": "collisions", "data": data, "prepared": PREPARED[data], "s": s, "seeds": seeds}

    def measure(bench: Bench) -> Found:
        split = bench.sets.split(data, PREPARED[data])
        dataset = bench.service.dataset(f"{data}-all", np.vstack([split.x, split.x_test])[:2000])
        spec = {"input_dim": split.x.shape[1], "kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "s": s}
        found: Found = {"full": [], "zero_bit": [], "b_bit": []}
        for seed in range(seeds):
            with bench.service.map(**spec, seed=seed, dtype="float64") as its_map:
                answer = its_map.diagnostic("collisions", dataset=dataset, pairs=10_000, bits=8)
            for name, biases in found.items():
                biases.append(answer[name]["bias"])
        return found | {"exact": answer["exact"]["mean"]}

    return Cell(settings, measure, 5.0)


def write(page: Page, kept: Kept) -> None:
    """The sections of the paper's page."""
    hashing_pages.write(page, kept)
