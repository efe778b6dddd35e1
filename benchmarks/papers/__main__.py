"""The papers' own tables and figures, measured through a service of this run's own.

Run: python -m benchmarks.papers --data DIR [--write] [--only NAME ...] [--minutes M]

DIR has the archives cpu.npz, housing.npz, mnist5000_raw.npz, letter.npz, satimage.npz, car.npz, splice.npz and
vowel.npz, each with X, y, idx_train and idx_test. Every cell that is measured is kept at once in
benchmarks/papers/results, by its settings: a run that was interrupted, or had no more minutes, goes on where it was.
Delete a file there to measure a paper anew. With `--write` the pages and pictures in docs/papers are written from what
is kept, finished or not; without `--data` nothing is measured.
"""

import argparse
import time
from pathlib import Path

from tqdm import tqdm

from benchmarks.papers import front
from benchmarks.papers.cells import Bench, Cell, Kept
from benchmarks.papers.over_http import own_service
from benchmarks.papers.sets import Sets

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parents[2] / "docs" / "papers"


def measure(paper: str, data: Path, until: float) -> None:
    """Measure what is missing of a paper, short cells first; begin none after `until`, by the monotonic clock."""
    kept = Kept(RESULTS / f"{paper}.jsonl")
    missing = [cell for cell in front.PAPERS[paper].cells() if kept.get(cell.settings) is None]
    if not missing or time.monotonic() > until:
        return
    with own_service() as service, tqdm(sorted(missing, key=lambda cell: cell.guess), desc=paper, unit="cell") as cells:
        bench = Bench(service, Sets(data), kept)
        for cell in cells:
            if time.monotonic() > until:
                break
            cells.set_postfix_str(_told(cell))
            try:
                bench.found(cell)
            except RuntimeError as error:  # one refusal of the service leaves out one cell
                cells.write(f"{cell.settings}: {error}")


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
    for paper in options.only if options.data else ():
        measure(paper, options.data, until)
    if options.write:
        DOCS.mkdir(exist_ok=True)
        for page in front.pages({paper: Kept(RESULTS / f"{paper}.jsonl") for paper in front.PAPERS}):
            (DOCS / f"{page.name}.md").write_text(page.text())
            for name, picture in page.pictures.items():
                (DOCS / name).write_text(picture)


if __name__ == "__main__":
    main()
