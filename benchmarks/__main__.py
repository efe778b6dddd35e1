"""The figures of this project beside its peers', in one run.

Run: python -m benchmarks [--only NAME ...] [--before CHECKOUT] [--data DIR] [--write]

Each part prints a section of Markdown; with `--write` it takes the place of that section in RESULTS.md, and its
pictures are written beside. What needs real data reads letter.npz, cpu.npz, mnist5000_raw.npz and, for landmarks,
satimage.npz, car.npz, housing.npz, splice.npz and vowel.npz of DIR, each with an array X of rows, and is left out
without.
"""

import argparse
import time
from importlib import import_module
from pathlib import Path

from benchmarks.results import RESULTS, rows_of, section_of, with_section
from benchmarks.timing import Plan, Report, machine

PARTS = (
    *("peers", "transform", "structured_error", "landmarks", "raw_rows", "round_trips", "crowds", "starts"),
    *("hashing_speed", "darts", "indexes"),
    *("processors", "bulk", "bulk_files", "bulk_plan", "engines"),
)
"""Modules with a TITLE and a function `run(report, plan)`, in the order of their sections."""
GOALS = "What must hold"


def run(names: list[str], plan: Plan) -> tuple[str, dict[str, str]]:
    """RESULTS.md with the sections of these parts, and their goals, as they are now; and the pictures by file name.

    Goals of parts that are not run stay.
    """
    text = RESULTS.read_text()
    goals: dict[str, tuple[str, ...]] = {}
    pictures: dict[str, str] = {}
    for name in names:
        part = import_module(f"benchmarks.{name}")
        report, begun = Report(part.TITLE), time.perf_counter()
        print(f"\n## {part.TITLE}\n", flush=True)
        report.say(f"`python -m benchmarks --only {name}` on {machine()}.\n")
        part.run(report, plan)
        print(f"({time.perf_counter() - begun:.0f} s)", flush=True)
        text = with_section(text, part.TITLE, report.lines)
        goals |= {goal[0]: goal for goal in report.goals}
        pictures |= report.pictures
    kept = {} if set(names) == set(PARTS) else {row[0]: row for row in rows_of(section_of(text, GOALS))}
    summary = Report(GOALS)
    print(f"\n## {GOALS}")
    summary.table(("figure", "measured", "goal"), (kept | goals).values())
    return with_section(text, GOALS, summary.lines), pictures


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="NAME", help=", ".join(PARTS))
    parser.add_argument("--before", type=Path, help="checkout of an older version, to measure beside this one")
    parser.add_argument("--data", type=Path, help="folder of letter.npz and the others")
    parser.add_argument("--write", action="store_true", help="put what is printed into RESULTS.md")
    parser.add_argument("--tiny", action="store_true", help="the least sizes, once: does everything run?")
    options = parser.parse_args()
    if options.tiny and options.write:
        parser.error("the figures of --tiny say nothing")
    text, pictures = run(list(options.only), Plan(options.tiny, options.data, options.before))
    if options.write:
        RESULTS.write_text(text)
        for name, picture in pictures.items():
            RESULTS.with_name(name).write_text(picture)


if __name__ == "__main__":
    main()
