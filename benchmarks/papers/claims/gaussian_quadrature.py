"""What became of the claims on quadrature."""

import numpy as np

from benchmarks.papers.cells import Kept
from benchmarks.papers.gaussian_quadrature import SETS, SIZES, by_diameter
from benchmarks.papers.gram import mean_and_error
from benchmarks.papers.pages import Claim, Verdict, judged, verdict_of, wanted
from benchmarks.papers.patches import PER_PATCH


def claims(kept: Kept) -> list[Claim]:
    """The paper's claims, and what became of them."""
    return [
        judged(
            "3.2, figure 1a",
            "A polynomially exact rule has far less error than RFF on small regions.",
            lambda: _small(kept, "polynomially exact"),
        ),
        judged(
            "3.4, figure 1b",
            "A sparse grid has tiny errors on small regions, and larger ones than RFF on large regions.",
            lambda: _sparse(kept),
        ),
        judged(
            "3.4, figure 1c",
            "A subsampled dense grid and RFF are essentially the same at all diameters.",
            lambda: _same(kept),
        ),
        judged(
            "5, figure 2a",
            "Subsampled grids are more accurate than RFF at most large numbers of features, and less at small ones.",
            lambda: _accurate(kept),
        ),
        judged(
            "3.5, figure 2b",
            "A reweighted grid has 2 to 3 times less error than RFF on rows that were not fitted.",
            lambda: _reweighted(kept),
        ),
        judged("3.5, figure 2b", "Halton and subsampled grids have the error of RFF.", lambda: _others(kept)),
        Claim(
            "5, figure 2c",
            "Phone error rates on TIMIT are alike, reweighted grids' slightly lower.",
            Verdict.untried,
            "The data are not available.",
        ),
        Claim(
            "3.5 and 5",
            "Grid features are made in half the time, or in 17 % less time.",
            Verdict.untried,
            "The claim is about the paper's own code for products with few distinct factors.",
        ),
    ]


def _ratios(kept: Kept, rule: str) -> dict[float, float]:
    """Greatest error of the rule over that of RFF, by diameter."""
    found = wanted(kept, figure="1", panel=rule)
    ours, plain = (by_diameter(found[name]) for name in (rule, "RFF"))
    return {m: mean / other for (m, mean, _), (_, other, _) in zip(ours, plain, strict=True)}


def _said(ratios: dict[float, float]) -> str:
    return "Error over that of RFF: " + ", ".join(f"{ratio:.2g} at {m:g}" for m, ratio in ratios.items()) + "."


def _small(kept: Kept, rule: str) -> tuple[Verdict, str]:
    ratios = _ratios(kept, rule)
    return (Verdict.holds if ratios[0.1] < 0.1 else Verdict.fails), _said(ratios)


def _sparse(kept: Kept) -> tuple[Verdict, str]:
    ratios = _ratios(kept, "sparse grid")
    return verdict_of((ratios[0.1] < 0.01) + (ratios[4.0] > 1), 2), _said(ratios)


def _same(kept: Kept) -> tuple[Verdict, str]:
    ratios = _ratios(kept, "subsampled grid")
    return verdict_of(sum(0.75 < ratio < 1.33 for ratio in ratios.values()), len(ratios)), _said(ratios)


def _accurate(kept: Kept) -> tuple[Verdict, str]:
    gains = []
    for k in PER_PATCH:
        grid, plain = (
            mean_and_error(wanted(kept, figure="2a", method=name, per_patch=k)["accuracies"])
            for name in ("subsampled grid", "RFF")
        )
        gains.append((grid[0] - plain[0], float(np.hypot(grid[1], plain[1]))))
    told_ = ", ".join(f"{gain:+.2f} ± {error:.1g}" for gain, error in gains)
    clear = [gain > 2 * error for gain, error in gains[-3:]]
    less = gains[0][0] < -2 * gains[0][1]
    verdict = verdict_of(2 * (sum(clear) >= 2) + (sum(clear) == 1) + less, 3)
    return verdict, f"Points gained over RFF, from {PER_PATCH[0]} to {PER_PATCH[-1]} frequencies a patch: {told_}."


def _against(kept: Kept, name: str) -> list[float]:
    """RMS error of RFF over that of a method."""
    cases = [(data, s) for data in SETS for s in SIZES]
    means = [
        [mean_and_error(wanted(kept, figure="2b", data=data, s=s, method=one)["rms"])[0] for one in ("RFF", name)]
        for data, s in cases
    ]
    return [plain / ours for plain, ours in means]


def _reweighted(kept: Kept) -> tuple[Verdict, str]:
    ratios = _against(kept, "reweighted grid")
    parts = [ratios[i : i + len(SIZES)] for i in range(0, len(ratios), len(SIZES))]
    told_ = ", ".join(
        f"{min(part):.2f} to {max(part):.2f} on {title}" for part, title in zip(parts, SETS.values(), strict=True)
    )
    return verdict_of(sum(ratio >= 2 for ratio in ratios), len(ratios)), f"The error is smaller by factors of {told_}."


def _others(kept: Kept) -> tuple[Verdict, str]:
    halton, grid = (_against(kept, name) for name in ("Halton", "subsampled grid"))
    ratios = [1 / one for one in (*halton, *grid)]
    right = sum(0.8 < ratio < 1.25 for ratio in ratios)
    return (
        verdict_of(right, len(ratios)),
        f"Error over that of RFF: Halton {1 / max(halton):.2f} to {1 / min(halton):.2f}, subsampled grid "
        f"{1 / max(grid):.2f} to {1 / min(grid):.2f}.",
    )
