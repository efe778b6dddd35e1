"""Transforms beside the bare product of their sizes, scikit-learn's features, and an older version of this project."""

from contextlib import ExitStack
from typing import NamedTuple

from benchmarks.contender import KEPT, NYSTROEM, PRODUCT, RBF, SKETCH, Contender
from benchmarks.timing import LIBRARY_REST, TIMES, Plan, Report, Times, cores, in_turns

TITLE = "Transforms"
PHASE, COS_SIN, STRUCTURED = "monte_carlo phase", "monte_carlo cos_sin", "structured_orthogonal phase"


class Size(NamedTuple):
    """Rows, their dimension, frequencies, and what is measured; where `before`, an older version too."""

    n: int
    d: int
    s: int
    contenders: tuple[str, ...] = (PRODUCT, KEPT, PHASE, COS_SIN, STRUCTURED, RBF, NYSTROEM, SKETCH)
    dtypes: tuple[str, ...] = ("float32", "float64")
    before: bool = False

    @property
    def told(self) -> str:
        """The size in words."""
        return f"{self.n:,} × {self.d:,} → {self.s:,}"


SIZES = (
    Size(2000, 16, 1024, before=True),
    Size(1000, 128, 1024, before=True),
    Size(4096, 784, 4096, (PRODUCT, KEPT, PHASE, COS_SIN, STRUCTURED, RBF)),
    Size(1024, 4096, 16384, (PRODUCT, KEPT, STRUCTURED), ("float32",)),
)
TINY = (
    Size(40, 16, 64, dtypes=("float32",), before=True),
    Size(20, 64, 128, (PRODUCT, STRUCTURED), ("float64",)),
)
SECONDS = 12.0

# By dimension, dtype and contender: the most parts of P.
OF_P = {
    (784, "float32", PHASE): 1.06,
    (784, "float32", COS_SIN): 1.25,
    (784, "float64", PHASE): 1.06,
    (784, "float64", COS_SIN): 1.15,
    (784, "float32", STRUCTURED): 0.25,
    (4096, "float32", STRUCTURED): 0.10,
}
# By dimension, dtype, contender and peer: how many times faster at least.
FASTER = {
    (16, "float32", PHASE, f"{PHASE}, before"): 2,
    (16, "float64", PHASE, f"{PHASE}, before"): 10,
    (16, "float32", COS_SIN, f"{COS_SIN}, before"): 1.5,
    (16, "float64", COS_SIN, f"{COS_SIN}, before"): 6,
    (784, "float32", PHASE, RBF): 1.1,
    (128, "float32", PHASE, RBF): 1.1,
    (16, "float32", PHASE, RBF): 1.6,
    (784, "float64", PHASE, RBF): 1.8,
    (128, "float64", PHASE, RBF): 5,
    (16, "float64", PHASE, RBF): 12,
}


def measured(size: Size, dtype: str, plan: Plan, **variables: str) -> dict[str, Times]:
    """Times of everything at a size, in processes with these variables in their environment."""
    with ExitStack() as stack:
        calls = {name: Contender(name, *size[:3], dtype, cores(), variables=variables) for name in size.contenders}
        if plan.before and size.before:
            for name in (PHASE, COS_SIN):
                calls[f"{name}, before"] = Contender(name, *size[:3], dtype, cores(), plan.before)
        for contender in calls.values():
            stack.callback(contender.close)
        return in_turns(calls, plan.seconds(SECONDS), LIBRARY_REST)


def run(report: Report, plan: Plan) -> None:
    """Write a table for each size and dtype."""
    report.say(
        "P is the bare NumPy product of rows and frequencies on all cores; `phase` has as many columns as frequencies, "
        "`cos_sin` twice as many. Everything takes turns, each in a process of its own. A ratio is the median, with "
        "quartiles, of the quotients within rounds."
    )
    for size in TINY if plan.tiny else SIZES:
        for dtype in size.dtypes:
            found = measured(size, dtype, plan)
            report.say(f"\n{size.told}, {dtype}:")
            rows = ((name, *times.cells(), times.over(found[PRODUCT]).spread()) for name, times in found.items())
            report.table(("what", *TIMES, "of P"), rows)
            _goals(report, size, dtype, found)


def _goals(report: Report, size: Size, dtype: str, found: dict[str, Times]) -> None:
    for (d, of, name), limit in OF_P.items():
        if (d, of) == (size.d, dtype) and name in found:
            ratio = found[name].over(found[PRODUCT])
            report.at_most(f"{size.told}, {dtype}, {name}: of P", ratio.median, limit, ratio.spread())
    for (d, of, name, peer), least in FASTER.items():
        if (d, of) == (size.d, dtype) and name in found and peer in found:
            ratio = found[peer].over(found[name])
            figure = f"{size.told}, {dtype}, {name}: times the speed of {peer}"
            report.at_least(figure, ratio.median, least, ratio.spread())
