"""The papers' own tables and figures, measured through a service of this run's own.

Run: python -m benchmarks.papers --data DIR [--write] [--only NAME ...] [--minutes M]

DIR has the archives cpu.npz, housing.npz, mnist5000_raw.npz, letter.npz, satimage.npz, car.npz, splice.npz and
vowel.npz, each with X, y, idx_train and idx_test. Two cells are measured at a time, in half an hour or so on two cores.
Every one is kept at once in benchmarks/papers/results, by its settings: a run that was interrupted, or had no more
minutes, goes on where it was. Delete a file there to measure a paper anew. With `--write` the pages and pictures in
docs/papers are written from what is kept, finished or not; without `--data` nothing is measured.
"""

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread

from threadpoolctl import threadpool_limits
from tqdm import tqdm

from benchmarks.papers import front
from benchmarks.papers.cells import Bench, Cell, Kept
from benchmarks.papers.over_http import own_service
from benchmarks.papers.sets import Sets

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parents[2] / "docs" / "papers"
Task = tuple[Bench, Cell]


def measure(papers: Sequence[str], data: Path, until: float) -> list[str]:
    """Measure what is missing, two cells at a time; begin none after `until`, by the monotonic clock.

    Returns:
        What went wrong, with the settings of the cell that it went wrong in.
    """
    kept = {paper: Kept(RESULTS / f"{paper}.jsonl") for paper in papers}
    cells = [(paper, cell) for paper in papers for cell in front.PAPERS[paper].cells()]
    missing = [(paper, cell) for paper, cell in cells if kept[paper].get(cell.settings) is None]
    if not missing:
        return []
    failed: list[str] = []
    with own_service() as service, threadpool_limits(1), tqdm(total=len(missing), unit="cell") as shown:
        sets = Sets(data)
        benches = {paper: Bench(service, sets, kept[paper]) for paper in papers}
        tasks = deque((benches[paper], cell) for paper, cell in sorted(missing, key=lambda one: one[1].guess))
        # One thread begins with the short cells and the other with the long ones: neither waits for the other at the
        # end, and no two of the longest, which take most memory, are measured at a time. Daemons, as an interrupt is
        # not to wait for them.
        both = [Thread(target=_work, args=(take, until, shown, failed), daemon=True) for take in _ends(tasks)]
        for one in both:
            one.start()
        for one in both:
            one.join()
    return failed


def _ends(tasks: deque[Task]) -> tuple[Callable[[], Task], Callable[[], Task]]:
    return tasks.popleft, tasks.pop


def _work(take: Callable[[], Task], until: float, shown: "tqdm[None]", failed: list[str]) -> None:
    """Measure one cell after the other until there are no more."""
    while time.monotonic() < until:
        try:
            bench, cell = take()
        except IndexError:
            return
        try:
            bench.found(cell)
        except Exception as error:  # what fails is told, and leaves out no other cell
            failed.append(f"{cell.settings}: {error!r}")
            shown.write(failed[-1])
        shown.set_postfix_str(_told(cell), refresh=False)
        shown.update()


def _told(cell: Cell) -> str:
    return " ".join(str(one) for one in cell.settings.values() if isinstance(one, str | int | float))[:60]


def main() -> None:
    """Measure, and write the pages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the archives; without it nothing is measured")
    parser.add_argument("--only", nargs="+", choices=front.PAPERS, default=list(front.PAPERS), metavar="NAME")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no cell after so many")
    parser.add_argument("--write", action="store_true", help="write the pages and pictures of docs/papers")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    failed = measure(options.only, options.data, until) if options.data else []
    if options.write:
        DOCS.mkdir(exist_ok=True)
        for page in front.pages({paper: Kept(RESULTS / f"{paper}.jsonl") for paper in front.PAPERS}):
            (DOCS / f"{page.name}.md").write_text(page.text())
            for name, picture in page.pictures.items():
                (DOCS / name).write_text(picture)
    if failed:
        sys.exit(f"{len(failed)} cells could not be measured; the next run tries them again")


if __name__ == "__main__":
    main()
