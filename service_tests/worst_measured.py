"""What the worst requests cost on this machine, as a table: `python -m service_tests.worst_measured [words]`.

With words, only the requests in whose line they all stand. Figures are right where nothing else runs.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from service_tests.costs import MB, cost
from service_tests.running import Running, service
from service_tests.worst_maps import prepare
from service_tests.worst_requests import WORST, Worst, allowed, at_once


def chosen(words: list[str]) -> Iterator[tuple[str, Worst]]:
    """The requests in whose line all words stand, each with its call."""
    for call, each in WORST.items():
        for one in each:
            if all(word in f"{call}: {one.why}" for word in words):
                yield call, one


def measure(running: Running, words: list[str]) -> None:
    """Print a line for each request: what it took, of what is allowed."""

    def line(call: str, one: Worst) -> str:
        found = cost(running, lambda http: one.send(http, call.partition(" ")[0]))
        most = allowed(one, found.sent)
        figures = (
            f"{found.peak / MB:.0f} of {most / MB:.0f}" + " (!)" * (found.peak > most),
            f"{found.of_job / MB:.0f}",
            f"{found.seconds * one.of:.1f}",
            f"{found.longest_wait * 1000:.0f}",
            f"{found.sent.body / MB:.1f}",
            f"{found.sent.answer / MB:.1f}",
            str(found.sent.status),
        )
        return f"| {' | '.join(figures)} | {call}: {one.why} |"

    print(
        "| MB, of allowed | MB of its job | s of a core | ms others wait | MB sent | MB answered | status | request |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for call, one in chosen(words):
        print(line(call, one), flush=True)


def main(words: list[str]) -> None:
    """Measure one request after the other, then 64 at once."""
    with tempfile.TemporaryDirectory() as home, service(Path(home) / "data", "--job-workers", "1") as running:
        with running.client(Prefer="wait=30") as http:
            http.timeout = 300
            prepare(http)
        measure(running, words)
        statuses, waited = at_once(running)
        waited.sort()
        middle, late = (1000 * waited[int(len(waited) * part)] for part in (0.5, 0.99))
        print(f"64 at once: {dict(Counter(statuses))}; /health/live in {middle:.1f} ms, 99 of 100 in {late:.1f} ms, ")
        print(f"all in {1000 * waited[-1]:.1f} ms; the service {'lives' if running.process.poll() is None else 'DIED'}")


if __name__ == "__main__":
    main(sys.argv[1:])
