"""What became of the claims on sets that are learned."""

import numpy as np

from benchmarks.papers import printed
from benchmarks.papers.cells import Kept, Settings
from benchmarks.papers.learned_sets import KINDS, METRICS, STEPS, TABLE_3
from benchmarks.papers.pages import Claim, Verdict, judged, verdict_of, wanted


def claims(kept: Kept) -> list[Claim]:
    """The claims of this section."""
    return [
        judged(
            "6.2, figure 5",
            "Halton points have less error over the square than random ones, global ones an order of magnitude less.",
            lambda: _plane(kept),
        ),
        judged(
            "6.2, figure 6",
            "On cpu all errors fall while all points are learned.",
            lambda: _falls(kept, "cpu-raw", 1.0),
        ),
        judged(
            "6.2, figure 6",
            "On housing over the whole box, errors rise again while the discrepancy falls.",
            lambda: _overfits(kept),
        ),
        judged(
            "6.2, figure 6",
            "Over half the box, mean error and norm on housing end lower than over the whole.",
            lambda: _half(kept),
        ),
        judged(
            "6.2, table 2", "Learned sets have discrepancies orders of magnitude below Halton's.", lambda: _orders(kept)
        ),
        judged("6.2, table 2", "Weights alone sometimes beat global and greedy sets.", lambda: _weights(kept)),
        judged(
            "6.2, table 3", "At each s some learned set has less test error than Halton.", lambda: _some_better(kept)
        ),
        judged(
            "6.2, table 3", "In most cases a quarter of the box serves better than all of it.", lambda: _quarter(kept)
        ),
    ]


def _plane(kept: Kept) -> tuple[Verdict, str]:
    found = wanted(kept, figure="5", s=100)
    rms = {name: float(np.sqrt(np.mean(np.square(values)))) for name, values in found.items()}
    right = (rms["Halton"] < rms["MC"]) + (10 * rms["global, b"] < rms["Halton"])
    return verdict_of(right, 2), "RMS error: " + ", ".join(f"{name} {value:.1e}" for name, value in rms.items()) + "."


def _ends(kept: Kept, data: str, scale: float) -> tuple[Settings, Settings]:
    first = wanted(kept, figure="6", data=data, scale=scale, iterations=0)
    return first, wanted(kept, figure="6", data=data, scale=scale, iterations=STEPS[-1])


def _falls(kept: Kept, data: str, scale: float) -> tuple[Verdict, str]:
    first, last = _ends(kept, data, scale)
    ratios = {name: last[metric] / first[metric] for metric, name in METRICS.items()}
    right = sum(ratio < 0.9 for ratio in ratios.values())
    told = ", ".join(f"{name} × {ratio:.2g}" for name, ratio in ratios.items())
    return verdict_of(right, len(ratios)), f"After {STEPS[-1]} steps: {told}."


def _overfits(kept: Kept) -> tuple[Verdict, str]:
    found = [wanted(kept, figure="6", data="housing", scale=1.0, iterations=steps) for steps in STEPS]
    norms = [one["norm"] for one in found]
    least = int(np.argmin(norms))
    rises = norms[-1] > 1.1 * norms[least] and found[-1]["normalized"] < found[least]["normalized"]
    # In the paper errors fall before they rise: what rises from the start is half of that.
    verdict = Verdict.fails if not rises else Verdict.holds if least else Verdict.in_part
    told = f"The norm is least after {STEPS[least]} steps, {norms[least]:.3g}, and ends at {norms[-1]:.3g}"
    fall = found[-1]["normalized"] / found[0]["normalized"]
    return verdict, f"{told}, while D² falls to {fall:.2g} of its first value."


def _half(kept: Kept) -> tuple[Verdict, str]:
    whole, half = (_ends(kept, "housing", scale)[1] for scale in (1.0, 0.5))
    right = (half["mean"] < whole["mean"]) + (half["norm"] < whole["norm"])
    return (
        Verdict.holds if right == 2 else Verdict.fails
    ), f"The norm ends at {half['norm']:.3g} over half, at {whole['norm']:.3g} over the whole."


def _table_2(kept: Kept) -> dict[tuple[int, float], dict[str, float]]:
    return {
        (s, scale): {
            kind: wanted(kept, figure="table 2", kind=kind, s=s, scale=scale)["normalized"]
            for kind in ("Halton", *KINDS)
        }
        for s, scale in printed.DISCREPANCIES
    }


def _orders(kept: Kept) -> tuple[Verdict, str]:
    found = _table_2(kept)
    ratios = {kind: [one["Halton"] / one[kind] for one in found.values()] for kind in KINDS}
    cases = [ratio for one in ratios.values() for ratio in one]
    right = sum(ratio > 10 for ratio in cases)
    told = ", ".join(f"{kind} {min(one):.3g} to {max(one):.3g} times" for kind, one in ratios.items())
    return verdict_of(right, len(cases)), f"More than ten times below in {right} of {len(cases)} cases: {told}."


def _weights(kept: Kept) -> tuple[Verdict, str]:
    found = _table_2(kept)
    over_greedy, over_global = (
        sum(one["weighted"] < one[kind] for one in found.values()) for kind in ("greedy", "global")
    )
    verdict = (
        Verdict.holds
        if over_greedy and over_global
        else Verdict.in_part
        if over_greedy or over_global
        else Verdict.fails
    )
    return verdict, f"Of {len(found)} cases, below greedy in {over_greedy} and below global in {over_global}."


def _table_3(kept: Kept) -> dict[int, dict[tuple[str, float], float]]:
    return {
        s: {
            (kind, scale): wanted(kept, figure="table 3", kind=kind, scale=scale, s=s)["error"]
            for kind, scale in TABLE_3
        }
        for s in printed.LEARNED_REGRESSION
    }


def _some_better(kept: Kept) -> tuple[Verdict, str]:
    found = _table_3(kept)
    best = {s: min(one, key=lambda set_: one[set_]) for s, one in found.items()}
    right = sum(kind != "Halton" for kind, _ in best.values())
    told = ", ".join(
        f"{best[s][0]} over {best[s][1]:g}·b {one[best[s]]:.4f} (Halton {one['Halton', 1.0]:.4f})"
        for s, one in found.items()
    )
    told = f"Best at s = {', '.join(map(str, found))}: {told}. Six tries, chosen by test rows, against one."
    return verdict_of(right, len(found)), told


def _quarter(kept: Kept) -> tuple[Verdict, str]:
    found = _table_3(kept)
    cases = [one[kind, 0.25] < one[kind, 1.0] for one in found.values() for kind in KINDS]
    return (Verdict.holds if 2 * sum(cases) > len(cases) else Verdict.fails), f"In {sum(cases)} of {len(cases)} cases."
