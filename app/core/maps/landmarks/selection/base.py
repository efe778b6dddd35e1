"""Common parts of the ways to select landmarks: their result, their states, and how they take rows in an order."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from app.core.arrays import Array, Matrix, Rows, Whole, row_blocks
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel
from app.core.maps.landmarks.selection.basis import Basis
from app.core.progress import Progress, packed, unpacked
from app.core.samplers.base import Rng
from app.core.threads import for_each


class Selected(NamedTuple):
    """Landmarks, and figures about them."""

    landmarks: Rows
    """At most s of them, (s', d), as the kernel compares them: none is a combination of the others."""
    report: dict[str, float]
    """As the methods say."""


Select = Callable[[AnyKernel, Rows, int, Rng, Progress, int], Selected]
"""Selects landmarks: kernel, prepared rows (n, d), how many at most, random numbers, progress, number of threads.

What it selects depends on the state of the random numbers when it is called, and not on the threads. InvalidInput if
all rows have kernel 0 with themselves.
"""


class Run:
    """One run of a selection: its progress, in stages of equal length, and the arrays it goes on from."""

    def __init__(self, s: int, progress: Progress, threads: int, stages: int = 1) -> None:
        self.s, self.threads = s, threads
        self.kept: dict[str, Array] = unpacked(progress.restored())
        """The state, by name. It is changed only between two pauses."""
        self._progress, self._stages = progress, stages

    def pause(self) -> None:
        """Offer the state."""
        self._progress.checkpoint(partial(packed, **self.kept))

    def tell(self, stage: int, done: int, of: int) -> None:
        """Report how much of a stage is done, as if there were a step for each landmark."""
        self._progress.report(self.s * (stage * of + done) // (self._stages * of), self.s)

    def by_row(
        self, name: str, of: Callable[[Rows], Matrix], rows: Rows, per_part: int, stage: int | None = None
    ) -> Matrix:
        """One number for each row, (n,), in parts; those of finished parts are kept. A stage is told of, if given."""
        n = rows.shape[0]
        values = np.empty(n)
        before = self.kept.get(name, values[:0])
        values[: len(before)] = before
        parts = list(row_blocks(n, per_part, len(before)))
        ends = iter([part.stop for part in parts])

        def fill(part: slice) -> None:
            values[part] = of(rows[part])

        def pause() -> None:
            end = next(ends)
            self.kept[name] = values[:end]
            if stage is not None:
                self.tell(stage, end, n)
            self.pause()

        for_each(fill, parts, self.threads, pause)
        return values


def words(rng: Rng) -> list[int]:
    """Words from which `stream` makes random numbers for any number of steps."""
    return [int(word) for word in rng.integers(1 << 63, size=4)]


def stream(seed: list[int], step: int) -> Rng:
    """Random numbers of one step, the same whether or not the steps before were done by this process."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([*seed, step])))


def restored(basis: Basis, run: Run) -> Basis:
    """The basis with the landmarks that an earlier attempt has found, in the same steps, so with the same bits."""
    start = 0
    for end in run.kept.get("ends", []):
        basis.add(run.kept["numbers"][start:end])
        start = int(end)
        run.pause()
    return basis


def offer(basis: Basis, run: Run, candidates: Whole, thresholds: Matrix) -> int:
    """Make landmarks of those candidates that are accepted, as `Basis.accepted` says, up to s in all; their count."""
    taken = candidates[basis.accepted(candidates, thresholds)][: run.s - len(basis)]
    if len(taken):
        basis.add(taken)
        run.kept["numbers"] = np.append(run.kept.get("numbers", taken[:0]), taken)
        run.kept["ends"] = np.append(run.kept.get("ends", np.empty(0, np.int64)), len(basis))
    return len(taken)


def take_in_order(basis: Basis, run: Run, order: Whole, stage: int = 0) -> None:
    """Make landmarks of the first s rows in this order that are no combinations of those before."""
    position = int(run.kept.get("position", 0))
    while len(basis) < run.s and position < len(order):
        block = order[position : position + basis.rows_per_offer]
        offer(basis, run, block, np.zeros(len(block)))
        position += len(block)
        run.kept["position"] = np.array(position)
        run.tell(stage, max(len(basis) * len(order), position * run.s), run.s * len(order))
        run.pause()


def selected(basis: Basis, **report: float) -> Selected:
    """The result; InvalidInput if there are no landmarks."""
    if not len(basis):
        reason = "all rows have kernel 0, with themselves and all others: nothing can be learned from them"
        raise InvalidInput(reason, "/sampler/dataset")
    return Selected(basis.landmarks, report)
