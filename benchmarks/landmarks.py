"""Landmark maps beside Fourier features, codes and scikit-learn's Nystroem: speeds, errors, times, and curves."""

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from benchmarks.contender import LANDMARKS, NYSTROEM, Contender
from benchmarks.held_out import CODES, FOURIER, GMM, SELECTIONS, SETS, Matrix, data_of, errors, microseconds
from benchmarks.landmark_curves import drawn
from benchmarks.timing import LIBRARY_REST, TIMES, Plan, Report, cores, in_turns

TITLE = "Landmarks"
# At most so many rows of a set; those that are timed.
ROWS, TIMED_ROWS = 3000, 1000
TINY_ROWS = 90
BEST, ANY_ROW = "rp_cholesky", "uniform"
GAUSSIAN_METHODS, GMM_METHODS = (*SELECTIONS, NYSTROEM, *FOURIER), (*SELECTIONS, CODES)
TIMED = (ANY_ROW, NYSTROEM, *FOURIER)
"""By Gaussian kernel; landmarks take the same time however they are selected."""


class Of(NamedTuple):
    """What errors are of: the length scale or that it is the min-max kernel, dtype, data, columns."""

    scale: str
    dtype: str
    name: str
    columns: int


class Case(NamedTuple):
    """What is measured of every set of data."""

    scale: str
    dtype: str
    methods: tuple[str, ...]
    columns: tuple[int, ...]
    seeds: int


CASES = (
    Case(GMM, "float64", GMM_METHODS, (512, 128, 32), 3),
    Case(GMM, "float64", (CODES,), (2048,), 3),
    Case("median", "float64", GAUSSIAN_METHODS, (512, 128, 32), 10),
    Case("median", "float64", FOURIER, (2048,), 3),
    Case("tenth", "float64", (BEST, NYSTROEM, *FOURIER), (512, 128), 3),
    Case("median", "float32", (BEST, NYSTROEM), (512,), 3),
)
SLOW = (GMM, "mnist")
"""Where k-means takes half a minute for each seed, and is left out."""
Found = Mapping[Of, Mapping[str, Matrix]]
Micros = Mapping[Of, Mapping[str, float]]
"""Errors by method, one for each seed; microseconds of a row by method."""

SPEEDS, TINY_SPEEDS = ((4096, 784, 512), (4096, 16, 256)), ((40, 16, 32),)
FASTER, SECONDS = 1.5, 8.0
JUDGED, JUDGED_COLUMNS = ("letter", "cpu", "mnist", "satimage", "car", "housing"), (128, 512)


def run(report: Report, plan: Plan) -> None:
    """Write speeds beside scikit-learn's on the same landmarks; then errors and times by data, tables and curves."""
    _speeds(report, plan)
    if plan.data is None:
        report.say("Left out are errors: they need `--data`.")
        return
    found = measured(plan.data, plan.tiny)
    report.say(
        "Relative Frobenius error of the Gram matrix of rows that were not learned from, a mean of ten seeds; of three "
        f"for k_means and leverage, with 2,048 columns, and in tables that say so. Of each set at most {ROWS:,} rows "
        "are taken: two thirds to learn from, of which a landmark map holds out a tenth, and a third to judge by. "
        "Columns are standardised. "
        f"{NYSTROEM} is scikit-learn's; its landmarks are any rows of those that a landmark map of the same seed "
        "learns from. Bold: the least of a line. housing and vowel have 304 and 317 rows to learn from, which are all "
        "landmarks where 512 are asked for; `structured_orthogonal` wants 8 dimensions."
    )
    report.say("\nGaussian kernel, σ the median distance, float64:")
    _errors_table(report, found, "median", "float64", GAUSSIAN_METHODS)
    times = _timed(plan, found, "median", TIMED)
    report.say(
        f"Microseconds of a row, the least of some calls with {TIMED_ROWS:,} rows on one thread, float32. Landmarks "
        "take the same time however they are selected:"
    )
    _times_table(report, times, TIMED)
    _curves(report, found, times, "median", "Gaussian kernel, σ the median distance")
    report.say("σ the mean distance to the tenth nearest neighbour, three seeds:")
    _errors_table(report, found, "tenth", "float64", (BEST, NYSTROEM, *FOURIER))
    report.say("σ the median distance again, in float32, three seeds:")
    _errors_table(report, found, "median", "float32", (BEST, NYSTROEM))
    report.say(
        "Min-max kernel, three seeds; codes are as many hashes as there are columns; k_means of mnist is left out, as "
        "it would take minutes:"
    )
    _errors_table(report, found, GMM, "float64", GMM_METHODS)
    times = _timed(plan, found, GMM, (ANY_ROW, CODES))
    report.say("Microseconds of a row, as above:")
    _times_table(report, times, (ANY_ROW, CODES))
    _curves(report, found, times, GMM, "Min-max kernel")
    _goals(report, found)


def measured(folder: Path, tiny: bool) -> Found:
    """The errors of every case, on all cores; with `tiny`, of few rows and columns."""
    asked = {
        Of(case.scale, case.dtype, name, columns): (tiny, folder, 2 if tiny else case.seeds, case.methods)
        for case in CASES
        for columns in ((case.columns[-1] // 4,) if tiny else case.columns)
        for name in SETS
    }
    with ProcessPoolExecutor(cores(), get_context("spawn")) as pool:
        done = {of: pool.submit(_errors, of, *arguments) for of, arguments in asked.items()}
        return {of: one.result() for of, one in done.items()}


def _errors(of: Of, tiny: bool, folder: Path, seeds: int, methods: tuple[str, ...]) -> dict[str, Matrix]:
    if (of.scale, of.name) == SLOW:
        methods = tuple(method for method in methods if method != "k_means")
    data = data_of(folder, of.name, TINY_ROWS if tiny else ROWS, of.scale, of.dtype)
    return errors(data, of.columns, seeds, methods)


def _lines(found: Mapping[Of, object], scale: str, dtype: str) -> list[Of]:
    """What there is for a table, by data and columns."""
    order = list(SETS)
    lines = [of for of in found if (of.scale, of.dtype) == (scale, dtype)]
    return sorted(lines, key=lambda of: (order.index(of.name), of.columns))


def _errors_table(report: Report, found: Found, scale: str, dtype: str, methods: tuple[str, ...]) -> None:
    rows = []
    for of in _lines(found, scale, dtype):
        means = {method: float(each.mean()) for method, each in found[of].items()}
        told = {method: f"{mean:.2g}" for method, mean in means.items()}
        told |= {method: f"**{told[method]}**" for method in means if means[method] == min(means.values())}
        rows.append((of.name, f"{of.columns:,}", *(told.get(method, "–") for method in methods)))
    report.table(("data", "columns", *methods), rows)


def _timed(plan: Plan, found: Found, scale: str, methods: tuple[str, ...]) -> Micros:
    """Times of what there are errors of."""
    times = {}
    for of in _lines(found, scale, "float64"):
        data = data_of(plan.data or Path(), of.name, TINY_ROWS if plan.tiny else ROWS, scale, "float32")
        times[of] = microseconds(data, of.columns, TIMED_ROWS, tuple(one for one in methods if one in found[of]))
    return times


def _times_table(report: Report, times: Micros, methods: tuple[str, ...]) -> None:
    heads = ("landmarks" if method == ANY_ROW else method for method in methods)
    rows = (
        (of.name, f"{of.columns:,}", *(f"{of_row[one]:.2g}" if one in of_row else "–" for one in methods))
        for of, of_row in times.items()
    )
    report.table(("data", "columns", *heads), rows)


def _curves(report: Report, found: Found, times: Micros, scale: str, title: str) -> None:
    """Pictures of the errors, against columns and against the time of a row."""
    for against, label in (("columns", "columns"), ("time", "microseconds a row")):
        panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for of, of_row in times.items():
            for method, each in found[of].items():
                x = of.columns if against == "columns" else of_row[ANY_ROW if method in SELECTIONS else method]
                panels.setdefault(of.name, {}).setdefault(method, []).append((x, float(each.mean())))
        picture = f"landmarks_{scale}_{against}.svg"
        report.pictures[picture] = drawn(panels, label, title)
        report.say(f"![{title}: error against {label}]({picture})\n")


def _goals(report: Report, found: Found) -> None:
    """Means of ten seeds beside scikit-learn's, and beside the least of Fourier's; quotients of three digits."""
    for of in _lines(found, "median", "float64"):
        if of.name not in JUDGED or of.columns not in JUDGED_COLUMNS or BEST not in found[of]:
            continue
        means = {method: float(each.mean()) for method, each in found[of].items()}
        fourier = min((method for method in FOURIER if method in means), key=means.__getitem__)
        for other, called in ((NYSTROEM, NYSTROEM), (fourier, "the best Fourier features")):
            ratio = round(means[BEST] / means[other], 3)
            figure = f"Gram error on {of.name}, {of.columns} columns: {BEST} of {called}"
            report.at_most(figure, ratio, 1, f"{ratio:.3f} ({means[BEST]:.2g} of {means[other]:.2g}, {other})")


def _speeds(report: Report, plan: Plan) -> None:
    report.say(f"Landmark maps beside scikit-learn's {NYSTROEM} on the same landmarks, all cores:")
    rows: list[tuple[str, ...]] = []
    for n, d, s in TINY_SPEEDS if plan.tiny else SPEEDS:
        for dtype in ("float32", "float64"):
            with ExitStack() as stack:
                calls = {name: Contender(name, n, d, s, dtype, cores()) for name in (LANDMARKS, NYSTROEM)}
                for contender in calls.values():
                    stack.callback(contender.close)
                found = in_turns(calls, plan.seconds(SECONDS), LIBRARY_REST)
            size, ratio = f"{n:,} × {d} → {s}, {dtype}", found[NYSTROEM].over(found[LANDMARKS])
            rows += [
                (size, name, *times.cells(), found[NYSTROEM].over(times).spread()) for name, times in found.items()
            ]
            report.at_least(f"{size}, landmarks: times the speed of {NYSTROEM}", ratio.median, FASTER, ratio.spread())
    report.table(("size", "what", *TIMES, "times the speed"), rows)
