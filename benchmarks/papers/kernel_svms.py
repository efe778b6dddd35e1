"""SVMs with the exact kernels that the service answers, by γ and C, by preparation, and by split."""

from typing import Any

import numpy as np

from benchmarks.papers import printed
from benchmarks.papers.cells import Bench, Cell, Found, Kept, Settings
from benchmarks.papers.classifiers import PREPARED, exact_blocks, kernel_score, linear_score, unit
from benchmarks.papers.pages import Page, shown
from benchmarks.papers.pictures import Panel, Points, curves
from benchmarks.papers.sets import Split

KINDS = ("linear", "linear, intercept", "RBF", "GMM")
"""Of SVMs: linear ones without an intercept, as LIBLINEAR unless told, and with one."""


def kernel_cell(data: str, kind: str, costs: tuple[float, ...], gammas: tuple[float, ...], rows: int | None) -> Cell:
    """Test accuracy of kernel SVMs by γ and C, and the same with both chosen on a fifth of the training rows.

    Args:
        data: name of a set.
        kind: one of `KINDS`.
        costs: values of C.
        gammas: of the RBF kernel; one of no meaning for the others.
        rows: training rows at most.
    """
    settings: Settings = {
        "figure": "kernel",
        "data": data,
        "prepared": PREPARED[data],
        "kind": kind,
        "costs": list(costs),
    }
    settings |= {"gammas": list(gammas), "rows": rows}
    guess = {"car": 0.5, "vowel": 0.1, "splice": 0.5, "satimage": 8, "letter": 60}[data] * (1 + len(gammas))
    return Cell(settings, lambda bench: _kernel_scores(bench, settings), guess)


def _kernel_scores(bench: Bench, settings: Settings) -> Found:
    split = bench.sets.split(settings["data"], settings["prepared"])
    split = split._replace(x=split.x[: settings["rows"]], y=split.y[: settings["rows"]])
    costs, gammas = settings["costs"], settings["gammas"]
    if settings["kind"].startswith("linear"):
        intercept = settings["kind"] == "linear, intercept"
        unit_rows = split._replace(x=unit(split.x), x_test=unit(split.x_test))
        held = unit_rows.validating()
        scores, validated = (
            [[linear_score(one.x, one.x_test, one, cost, dual=False, intercept=intercept) for cost in costs]]
            for one in (unit_rows, held)
        )
        return _chosen(scores, validated, costs, gammas)
    kernel = {"kind": "gmm"} if settings["kind"] == "GMM" else {"kind": "correlation_rbf", "gamma": 1.0}
    gram, of_test = exact_blocks(bench, settings["data"], kernel, split)
    mixed = np.random.default_rng(0).permutation(len(gram))
    held_out, kept = np.split(mixed, [len(mixed) // 5])
    its_y = Split(split.x, split.y[kept], split.x, split.y[held_out])
    scores, validated = [], []
    for gamma in gammas:  # exp(−γ(1 − ρ)) is a power of that of γ = 1
        power, of_test_power = gram**gamma, of_test**gamma
        scores.append([kernel_score(power, of_test_power, split, cost) for cost in costs])
        train, test = power[np.ix_(kept, kept)], power[np.ix_(held_out, kept)]
        validated.append([kernel_score(train, test, its_y, cost) for cost in costs])
    return _chosen(scores, validated, costs, gammas)


def _chosen(scores: list[list[float]], validated: list[list[float]], costs: list[float], gammas: list[float]) -> Found:
    """All scores; the best, as the paper takes it; and that of the choice which no test row had a say in."""
    place = np.unravel_index(int(np.argmax(scores)), np.shape(scores))
    found: Found = {"scores": scores, "best": float(np.max(scores))}
    found |= {"best_gamma": gammas[place[0]], "best_cost": costs[place[1]]}
    row, column = np.unravel_index(int(np.argmax(validated)), np.shape(validated))
    return found | {"tuned": scores[row][column], "tuned_gamma": gammas[row], "tuned_cost": costs[column]}


def _kernels(gamma: float) -> dict[str, dict[str, Any]]:
    return {"RBF": {"kind": "correlation_rbf", "gamma": gamma}, "GMM": {"kind": "gmm"}}


def preparation_cell(data: str, how: str, gamma: float, costs: tuple[float, ...]) -> Cell:
    """Best test accuracy by C of each kernel, RBF at one γ, on rows prepared in one way."""
    settings: Settings = {"figure": "preparation", "data": data, "how": how, "gamma": gamma, "costs": list(costs)}

    def measure(bench: Bench) -> Found:
        split, found = bench.sets.split(data, how), {}
        rows = unit(split.x), unit(split.x_test)
        found["linear"] = max(linear_score(*rows, split, cost, dual=False) for cost in costs)
        for name, kernel in _kernels(gamma).items():
            gram, of_test = exact_blocks(bench, f"{data}-{how}", kernel, split)
            found[name] = max(kernel_score(gram, of_test, split, cost) for cost in costs)
        return found

    return Cell(settings, measure, 60.0 if data == "satimage" else 4.0)


def splits_cell(data: str, gamma: float, costs: tuple[float, ...], splits: int) -> Cell:
    """Best test accuracy by C of each kernel, RBF at one γ, for each of some random splits of the raw rows."""
    settings: Settings = {"figure": "splits", "data": data, "gamma": gamma, "costs": list(costs), "splits": splits}

    def measure(bench: Bench) -> Found:
        given = bench.sets.split(data, "raw")
        rows, classes = np.vstack([given.x, given.x_test]), np.concatenate([given.y, given.y_test])
        whole, units = Split(rows, classes, rows[:1], classes[:1]), unit(rows)
        kernels: dict[str, dict[str, Any]] = {
            "RBF": {"kind": "correlation_rbf", "gamma": gamma},
            "GMM": {"kind": "gmm"},
        }
        grams = {name: exact_blocks(bench, f"{data}-whole", kernel, whole)[0] for name, kernel in kernels.items()}
        found: Found = {"linear": [], "RBF": [], "GMM": []}
        for seed in range(splits):
            train, test = np.split(np.random.default_rng(seed).permutation(len(rows)), [len(given.x)])
            split = Split(units[train], classes[train], units[test], classes[test])
            found["linear"].append(max(linear_score(split.x, split.x_test, split, cost, dual=False) for cost in costs))
            for name, gram in grams.items():
                blocks = gram[np.ix_(train, train)], gram[np.ix_(test, train)]
                found[name].append(max(kernel_score(*blocks, split, cost) for cost in costs))
        return found

    return Cell(settings, measure, 30.0)


def write(page: Page, kept: Kept) -> None:
    """The sections on them."""
    _write_kernels(page, kept)
    _write_preparations(page, kept)
    _write_costs(page, kept)


def _write_kernels(page: Page, kept: Kept) -> None:
    page.head("Tables 1 and 2: SVMs with exact kernels")
    page.say(
        "Test accuracy in percent; in brackets the paper's. *Best*: γ and C chosen by the test rows, as in the paper. "
        "*Tuned*: both chosen on a fifth of the training rows, as a user would. C is 0.1 to 1,000 in powers of ten "
        "(letter 1 to 100), γ one of the paper's 58 (satimage nine of them, letter three). Linear and RBF use rows of "
        "unit length, GMM unscaled rows; letter is scaled to [−1, 1]. The paper does not state its splits of car, "
        "vowel and splice; ours are random. Satimage and letter have the original ones. Linear is LIBLINEAR without "
        "an intercept, its default, which is nearer to the paper than with one, except on splice."
    )
    rows = []
    for data, theirs in printed.KERNEL_SVMS.items():
        cells_ = []
        for kind, value in zip(KINDS, (theirs[0], None, theirs[1], theirs[3]), strict=True):
            found = kept.one(figure="kernel", data=data, kind=kind)
            best = shown(found, lambda one: f"{one['best']:.2f}") + ("" if value is None else f" ({value})")
            gamma = f", γ = {found['best_gamma']:g} ({theirs[2]:g})" if found and kind == "RBF" else ""
            cells_ += [best + gamma, shown(found, lambda one: f"{one['tuned']:.2f}")]
        rows.append((data, *cells_))
    heads = [f"{kind}, {how}" for kind in KINDS for how in ("best", "tuned")]
    page.table(("data", *heads), rows)


def _write_preparations(page: Page, kept: Kept) -> None:
    page.head("How the rows are prepared, and split")
    page.say(
        "The paper does not say how it scales columns. The table has the best test accuracy by C with columns "
        "unscaled, between −1 and 1, and standardised; RBF at the paper's γ; in brackets the paper's. Car, vowel, "
        "splice and satimage are used raw above and below: with RBF kernels, raw rows are by far the nearest to the "
        "paper on all four. Scaling hardly affects the GMM kernel. Splice numbers four nucleotides, which have no "
        "order. If two of the numbers are exchanged, linear and RBF come near the paper, so its file seems to number "
        "them in another way."
    )
    rows = [
        (one["data"], one["how"], *(f"{found[name]:.2f} ({value:g})" for name, value in _theirs(one["data"]).items()))
        for one, found in kept.each(figure="preparation")
    ]
    page.table(("data", "columns", *_theirs("car")), rows)
    page.say(
        "The same on raw rows over 20 random splits of the paper's sizes: mean ± standard deviation over splits, "
        "which shows how much a single split may differ."
    )
    rows = [
        (
            one["data"],
            *(
                f"{np.mean(found[name]):.1f} ± {np.std(found[name], ddof=1):.1f} ({value:g})"
                for name, value in _theirs(one["data"]).items()
            ),
        )
        for one, found in kept.each(figure="splits")
    ]
    page.table(("data", *_theirs("car")), rows)


def _theirs(data: str) -> dict[str, float]:
    """What the paper has for a set, by kernel."""
    linear, rbf, _, gmm = printed.KERNEL_SVMS[data]
    return {"linear": linear, "RBF": rbf, "GMM": gmm}


def _write_costs(page: Page, kept: Kept) -> None:
    page.head("Figures 5 to 8: kernel SVMs by C")
    page.say("RBF at the best γ for every C, as in the paper.")
    panels = []
    for data in PREPARED:
        lines: dict[str, Points] = {}
        for kind in KINDS:
            found = kept.each(figure="kernel", data=data, kind=kind)
            if found:
                best = np.max(found[0][1]["scores"], axis=0)
                lines[kind] = [(cost, float(one), 0.0) for cost, one in zip(found[0][0]["costs"], best, strict=True)]
        panels.append(Panel(data, "C", "test accuracy, %", lines, ("log", "linear")))
    page.picture("costs", curves(panels, 3), "Accuracy of kernel SVMs by C")
