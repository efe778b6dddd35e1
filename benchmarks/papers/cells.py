"""What is measured, cell by cell, and kept in a file: a run that is interrupted goes on where it was."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from benchmarks.papers.over_http import Service
from benchmarks.papers.sets import Sets

Settings = dict[str, Any]
Found = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One thing to measure.

    Attributes:
        settings: all that its figures hang on, as JSON; what is kept is found again by them.
        measure: gives the figures, as JSON.
        guess: seconds it may take, by which short ones come first.
    """

    settings: Settings
    measure: Callable[["Bench"], Found]
    guess: float = 1.0


def _key(settings: Settings) -> str:
    return json.dumps(settings, sort_keys=True)


class Kept:
    """The figures of the cells of one paper that were measured, in a file with a line for each.

    Args:
        path: of the file, or None to keep them in memory only.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._found: dict[str, tuple[Settings, Found, float]] = {}
        self._locks: dict[str, Lock] = {}
        whole, _, cut_off = (path.read_text() if path is not None and path.exists() else "").rpartition("\n")
        if path is not None and cut_off:  # a run ended within its last line
            path.write_text(whole + "\n" * bool(whole))
        for line in whole.splitlines():
            one = json.loads(line)
            self._found[_key(one["settings"])] = one["settings"], one["found"], one["seconds"]

    def of(self, cells: Iterable[Cell]) -> "Kept":
        """What is kept of these cells, and nothing that cells of older versions left; in memory only."""
        kept = Kept()
        for cell in cells:
            if (one := self._found.get(_key(cell.settings))) is not None:
                kept.add(*one)
        return kept

    def get(self, settings: Settings) -> Found | None:
        """The figures of these settings, or None."""
        kept = self._found.get(_key(settings))
        return None if kept is None else kept[1]

    def seconds(self, settings: Settings) -> float:
        """How long they took to measure; 0 if they were not."""
        kept = self._found.get(_key(settings))
        return 0.0 if kept is None else kept[2]

    def each(self, **members: Any) -> list[tuple[Settings, Found]]:
        """Settings with these members and their figures, in the order of measuring."""
        return [
            (settings, found)
            for settings, found, _ in self._found.values()
            if all(settings.get(name) == member for name, member in members.items())
        ]

    def one(self, **members: Any) -> Found | None:
        """The figures of the only settings with these members, or None."""
        found = self.each(**members)
        return found[0][1] if found else None

    def measuring(self, settings: Settings) -> Lock:
        """What to hold while these are looked for and measured, so that no two threads measure the same."""
        return self._locks.setdefault(_key(settings), Lock())

    def add(self, settings: Settings, found: Found, seconds: float) -> None:
        """Keep figures, in the file before anything else is measured."""
        self._found[_key(settings)] = settings, found, seconds
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(json.dumps({"settings": settings, "found": found, "seconds": round(seconds, 2)}) + "\n")


@dataclass(frozen=True)
class Bench:
    """What cells measure with: a service, data, and what was measured before."""

    service: Service
    sets: Sets
    kept: Kept

    def found(self, cell: Cell) -> Found:
        """The figures of a cell, measured now if they are not kept."""
        with self.kept.measuring(cell.settings):
            kept = self.kept.get(cell.settings)
            if kept is not None:
                return kept
            begun = time.perf_counter()
            found = cell.measure(self)
            self.kept.add(cell.settings, found, time.perf_counter() - begun)
        return found
