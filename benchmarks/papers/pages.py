"""Pages of the documentation: tables, pictures, and claims with what became of them."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from matplotlib.figure import Figure

from benchmarks.papers.cells import Cell, Found, Kept
from benchmarks.papers.pictures import svg

MISSING = "–"
"""In the place of a figure that is not measured yet."""


class Verdict(StrEnum):
    """What became of a claim."""

    holds = "**holds**"
    in_part = "**holds in part**"
    fails = "**does not hold**"
    pending = "not measured yet"
    untried = "not tried"


@dataclass(frozen=True)
class Claim:
    """Something that a paper says.

    Attributes:
        where: in the paper.
        says: it, in our words.
        verdict: what became of it here.
        found: the figures that the verdict stands on, or why there are none.
    """

    where: str
    says: str
    verdict: Verdict
    found: str


def judged(where: str, says: str, judge: Callable[[], tuple[Verdict, str]]) -> Claim:
    """A claim with the verdict of `judge`, which may raise `Absent` where cells are missing."""
    try:
        verdict, found = judge()
    except Absent:
        verdict, found = Verdict.pending, "Run `python -m benchmarks.papers` to the end."
    return Claim(where, says, verdict, found)


def verdict_of(right: int, of: int) -> Verdict:
    """Of a claim that was right so many times: in part from half of them on."""
    if right == of:
        return Verdict.holds
    return Verdict.in_part if 2 * right >= of else Verdict.fails


class Absent(LookupError):
    """Figures that a claim needs are not measured yet."""


def wanted(kept: Kept, **members: Any) -> Found:
    """The figures of the only settings with these members; raises Absent without."""
    found = kept.one(**members)
    if found is None:
        raise Absent
    return found


@dataclass
class Page:
    """One page, written from the top.

    Attributes:
        name: of its file, without ending.
        title: above it.
    """

    name: str
    title: str
    lines: list[str] = field(default_factory=list)
    pictures: dict[str, str] = field(default_factory=dict)
    """SVG by the name of the file beside the page."""

    def say(self, text: str) -> None:
        """Add a paragraph."""
        self.lines += [text, ""]

    def head(self, text: str) -> None:
        """Add the head of a section."""
        self.say(f"## {text}")

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Add a table."""
        self.lines += [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
        self.lines += [f"| {' | '.join(row)} |" for row in rows] + [""]

    def picture(self, name: str, figure: Figure, shows: str) -> None:
        """Add a picture, if anything is drawn in it; else the word that it is not measured yet."""
        if any(axes.has_data() for axes in figure.axes):
            file = f"{self.name}-{name}.svg"
            self.pictures[file] = svg(figure)
            self.say(f"![{shows}]({file})")
        else:
            self.say(f"*{shows}: not measured yet.*")

    def claims(self, claims: Iterable[Claim]) -> None:
        """Add a table of claims."""
        rows = ((claim.says, claim.where, str(claim.verdict), claim.found) for claim in claims)
        self.table(("the paper says", "where", "here", "what we found"), rows)

    def progress(self, cells: Sequence[Cell], kept: Kept) -> None:
        """Say how much is measured, and how long that took."""
        done = [cell for cell in cells if kept.get(cell.settings) is not None]
        minutes = sum(kept.seconds(cell.settings) for cell in done) / 60
        rest = "" if len(done) == len(cells) else f" The rest shows as {MISSING} below."
        self.say(f"{len(done)} of {len(cells)} cells are measured, in {minutes:.0f} minutes of two at a time.{rest}")

    def text(self) -> str:
        """The page as Markdown."""
        return "\n".join([f"# {self.title}", "", *self.lines]).rstrip() + "\n"


def shown(found: Any, text: Callable[[Any], str]) -> str:
    """What a table has for figures, or for none."""
    return MISSING if found is None else text(found)


def told(mean: float, error: float = 0.0, digits: int = 3) -> str:
    """A mean with its standard error, to the first digit of the error; without one, to so many digits."""
    if error <= 1e-12 * abs(mean):
        return f"{mean:.{digits}g}"
    if abs(mean) < 1e-3:
        return f"{mean:.1e} ± {error:.0e}"
    places = min(8, max(0, -math.floor(math.log10(error))))
    return f"{mean:.{places}f} ± {error:.{places}f}"
