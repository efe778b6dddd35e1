"""What became of the claims on classical sequences."""

import numpy as np

from benchmarks.papers import printed
from benchmarks.papers.cells import Kept
from benchmarks.papers.claims import learned_sets
from benchmarks.papers.gram import mean_and_error
from benchmarks.papers.pages import Claim, Verdict, judged, verdict_of, wanted
from benchmarks.papers.quasi_monte_carlo import DATA, SCRAMBLED, SIZES, mean_of


def claims(kept: Kept) -> list[Claim]:
    """The paper's claims, and what became of them."""
    return [
        judged(
            "6.1, figure 2",
            "Halton, lattices and digital nets beat Monte Carlo at every s.",
            lambda: _beats(kept, ("Halton", "lattice", "digital net")),
        ),
        judged("6.1, figure 2", "Sobol' points do not beat Monte Carlo consistently.", lambda: _sobol(kept)),
        judged(
            "6.1, figure 3",
            "Scrambled sequences are more accurate than plain ones in most cases.",
            lambda: _scrambling(kept),
        ),
        judged(
            "6.1, table 1",
            "Halton has the smallest test error on cpu; Monte Carlo never has.",
            lambda: _regression(kept),
        ),
        judged(
            "6.1, figure 4", "Box discrepancy falls with s and goes with the Gram error.", lambda: _correlation(kept)
        ),
        *learned_sets.claims(kept),
        Claim("6.1 and 6.2", "The same on census and USPST.", Verdict.untried, "The data are not available."),
    ]


def _beats(kept: Kept, names: tuple[str, ...]) -> tuple[Verdict, str]:
    cases = [(name, data, s) for data in DATA for s in SIZES for name in names]
    lost, clear = [], 0
    for name, data, s in cases:
        (ours, spread), (theirs, other) = (_gram_error(kept, data, one, s) for one in (name, "MC"))
        clear += theirs - ours > 2 * float(np.hypot(spread, other))
        if ours >= theirs:
            lost.append(f"{name} on {data} at s = {s}")
    right = len(cases) - len(lost)
    found = f"{right} of {len(cases)} cases, {clear} of them by more than two standard errors."
    return verdict_of(right, len(cases)), found + (f" Exceptions: {', '.join(lost[:6])}." if lost else "")


def _gram_error(kept: Kept, data: str, sampler: str, s: int) -> tuple[float, float]:
    return mean_and_error(wanted(kept, figure="gram", data=data, sampler=sampler, s=s)["map"]["frobenius"])


def _sobol(kept: Kept) -> tuple[Verdict, str]:
    cases = [(data, s) for data in DATA for s in SIZES]
    won = sum(mean_of(kept, data, "Sobol'", s) < mean_of(kept, data, "MC", s) for data, s in cases)
    best = sum(
        mean_of(kept, data, "Sobol'", s) <= min(mean_of(kept, data, name, s) for name in printed.SEQUENCES)
        for data, s in cases
    )
    verdict = Verdict.fails if won == len(cases) else Verdict.in_part if 2 * won > len(cases) else Verdict.holds
    return (
        verdict,
        f"Scrambled Sobol' beats Monte Carlo in {won} of {len(cases)} cases, and has the least error of all in "
        f"{best}. We take s = 2^m, where it is balanced.",
    )


def _scrambling(kept: Kept) -> tuple[Verdict, str]:
    parts, right = [], 0
    for name in SCRAMBLED:
        better = sum(
            mean_of(kept, data, name, s) < mean_of(kept, data, f"{name}, plain", s) for data in DATA for s in SIZES
        )
        parts.append(f"{name} {better}")
        right += better
    of = len(DATA) * len(SIZES)
    # "Most cases" is the claim, so most cases are enough.
    return Verdict.holds if right > 2 * of else Verdict.fails, f"Of {of} cases each: {', '.join(parts)}."


def _regression(kept: Kept) -> tuple[Verdict, str]:
    least = {}
    for s in printed.REGRESSION:
        means = {
            name: mean_and_error(wanted(kept, figure="regression", sampler=name, s=s)["errors"])[0]
            for name in printed.SEQUENCES
        }
        least[s] = min(means, key=lambda name: means[name])
    right = sum(name == "Halton" for name in least.values())
    return verdict_of(right, len(least)), "Least: " + ", ".join(f"{name} at s = {s}" for s, name in least.items()) + "."


def _correlation(kept: Kept) -> tuple[Verdict, str]:
    cases = [(name, s) for name in printed.SEQUENCES for s in SIZES]
    found = [wanted(kept, figure="discrepancy", sampler=name, s=s) for name, s in cases]
    pairs = [[float(np.mean(one[measure])) for one in found] for measure in ("normalized", "norm")]
    together = float(np.corrcoef(np.log(pairs))[0, 1])
    falls = np.diff(np.reshape(pairs[0], (-1, len(SIZES))), axis=1) < 0
    right = bool(falls.all()) + 2 * (together > 0.8) + (0.5 < together <= 0.8)
    return (
        verdict_of(right, 3),
        f"From one s to the next it falls in {falls.sum()} of {falls.size} cases. Correlation of the logarithms over "
        f"sequences and s: {together:.2f}.",
    )
