"""How everything here is timed and told: calls that take turns, medians with their spread, tables, and goals."""

import gc
import platform
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
import psutil
from numpy.typing import ArrayLike, NDArray

from app.processors import available

LIBRARY_REST = 0.15
"""Seconds after which the threads of a linear algebra library have gone to sleep; until then they spin."""
_TURN_SECONDS = 0.03
_LEAST_ROUNDS = 5


class Times:
    """Measured values of one thing, a value for each round.

    Args:
        values: in the order of the rounds; seconds, unless they are quotients.
    """

    def __init__(self, values: ArrayLike) -> None:
        self.values: NDArray[np.float64] = np.asarray(values, np.float64)

    @property
    def median(self) -> float:
        """The median."""
        return self.at(50)

    def at(self, percent: float) -> float:
        """The percentile."""
        return float(np.percentile(self.values, percent))

    def over(self, other: "Times") -> "Times":
        """Quotients within the rounds: what disturbs both falls out."""
        return Times(self.values / other.values)

    def cells(self) -> tuple[str, str, str]:
        """Median, quartiles and least value, in milliseconds."""
        middle, low, high, least = (1e3 * value for value in (self.median, self.at(25), self.at(75), self.at(0)))
        return f"{middle:.3g} ms", f"{low:.3g} to {high:.3g}", f"{least:.3g}"

    def late(self) -> tuple[str, str, str]:
        """Median, and what a tenth and a hundredth exceed, in milliseconds."""
        middle, most, nearly_all = (1e3 * self.at(percent) for percent in (50, 90, 99))
        return f"{middle:.3g} ms", f"{most:.3g} ms", f"{nearly_all:.3g} ms"

    def spread(self) -> str:
        """Median and quartiles of quotients."""
        return f"{self.median:.2f} ({self.at(25):.2f} to {self.at(75):.2f})"


TIMES = ("median", "quartiles", "least")
LATE = ("median", "90 %", "99 %")
"""The heads of the columns that `Times.cells` and `Times.late` fill."""


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """A call that does the work and returns its seconds."""

    def call() -> float:
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun

    return call


def in_turns(
    calls: Mapping[str, Callable[[], float]], seconds: float, rest: float = 0.0, every: bool = False
) -> dict[str, Times]:
    """Times of calls that return their seconds: all take turns, round after round.

    Args:
        calls: by name.
        seconds: after which no round begins, if there were five; with 0 there is a single round.
        rest: seconds of quiet after every turn.
        every: whether every call counts; else the median of a turn, in which a short call is repeated.
    """
    first = {name: [call(), call()][1] for name, call in calls.items()}
    repeats = {name: max(1, int(min(_TURN_SECONDS, seconds) / taken)) for name, taken in first.items()}
    found: dict[str, list[float]] = {name: [] for name in calls}
    begun, rounds = time.perf_counter(), 0
    while rounds == 0 or (seconds and (rounds < _LEAST_ROUNDS or time.perf_counter() - begun < seconds)):
        for name, call in calls.items():
            taken = [call() for _ in range(repeats[name])]
            found[name] += taken if every else [float(np.median(taken))]
            time.sleep(rest)
        rounds += 1
    return {name: Times(values) for name, values in found.items()}


class Beside(ABC):
    """What goes on on a thread of its own while a block of code runs."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Go on until `_stop` is set."""


class Peak(Beside):
    """The most memory that a process holds while inside, sampled every half millisecond.

    Args:
        process: this one unless another is given.
    """

    def __init__(self, process: psutil.Process | None = None) -> None:
        super().__init__()
        self._process = process or psutil.Process()
        gc.collect()
        self.before = self.bytes = self._process.memory_info().rss

    def _run(self) -> None:
        while not self._stop.wait(0.0005):
            self.bytes = max(self.bytes, self._process.memory_info().rss)


def cores() -> int:
    """The cores that this process may use."""
    return available()


def machine() -> str:
    """Processor and number of cores."""
    told = Path("/proc/cpuinfo")
    names = (
        [line.split(": ")[1] for line in told.read_text().splitlines() if "model name" in line] if told.exists() else []
    )
    return f"{names[0] if names else platform.machine()}, {cores()} cores"


@dataclass(frozen=True)
class Plan:
    """What a run is to measure.

    Attributes:
        tiny: the least sizes, a single round: to see that everything runs.
        data: folder of the archives of real data, or None.
        before: checkout of an older version to measure beside this one, or None.
    """

    tiny: bool = False
    data: Path | None = None
    before: Path | None = None

    def seconds(self, wanted: float) -> float:
        """How long to measure."""
        return 0.0 if self.tiny else wanted


@dataclass
class Report:
    """The section of a part: Markdown that is printed as it is written, its pictures, and its rows of goals."""

    title: str
    lines: list[str] = field(default_factory=list)
    goals: list[tuple[str, str, str]] = field(default_factory=list)
    pictures: dict[str, str] = field(default_factory=dict)
    """SVG by the name of the file that the section shows."""

    def say(self, text: str) -> None:
        """Add a paragraph, or lines of one."""
        self.lines.append(text)
        print(text, flush=True)

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Add a table; rows that are made one after the other are printed so."""
        self.say(f"\n| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
        for row in rows:
            self.say(f"| {' | '.join(row)} |")
        self.say("")

    def at_most(self, figure: str, value: float, limit: float, told: str, unit: str = "") -> None:
        """Add a goal that `value` is not above `limit`; `told` is how the value was measured to be."""
        self._goal(figure, told, f"≤ {limit:g}{unit}", value <= limit)

    def at_least(self, figure: str, value: float, limit: float, told: str, unit: str = "") -> None:
        """Add a goal that `value` is not below `limit`."""
        self._goal(figure, told, f"≥ {limit:g}{unit}", value >= limit)

    def _goal(self, figure: str, told: str, limit: str, met: bool) -> None:
        self.goals.append((figure, told, limit if met else f"{limit}, missed"))
