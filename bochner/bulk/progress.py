"""Progress of bulk work: a bar in a terminal, lines elsewhere."""

import sys
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

from tqdm import tqdm

_LINE_SECONDS = 10.0
_BAR = "{percentage:3.0f}%|{bar}| {n:,.0f} of {total:,.0f} rows [{rate_fmt}, {remaining} left]"
_LINE = "{n:,.0f} of {total:,.0f} rows, {rate_fmt}, {remaining} left"


if TYPE_CHECKING:
    _Bar = tqdm[NoReturn]
else:  # the type of the iterated object exists in the stubs only
    _Bar = tqdm


class _Lines(_Bar):
    """Progress as a line every few seconds, for logs."""

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Write a line with the progress so far."""
        del pos
        sys.stderr.write((msg or str(self)) + "\n")


class Progress:
    """Number of rows written so far, shown for the duration of a with block. Threads may share one."""

    def __init__(self, total: int) -> None:
        terminal = sys.stderr.isatty()
        kind = _Bar if terminal else _Lines
        self._lock = Lock()
        self._bar = kind(
            total=max(1, total),
            unit=" rows",
            smoothing=0,  # all processors begin at once, and files end at the same time
            mininterval=0.1 if terminal else _LINE_SECONDS,
            bar_format=_BAR if terminal else _LINE,
            leave=terminal,
            file=sys.stderr,
        )

    def __call__(self, rows: int, before: bool) -> None:
        """Add rows that were written; rows written before this run (`before`) do not count for its speed."""
        with self._lock:
            if before:
                self._bar.initial += rows
            self._bar.total = max(self._bar.total or 0, self._bar.n + rows)
            self._bar.update(rows)

    def close(self) -> None:
        """Stop showing the progress."""
        self._bar.close()
