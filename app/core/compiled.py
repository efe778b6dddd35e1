"""How inner loops are compiled, and where they are kept."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import config, event
from numba.extending import intrinsic

Loop = TypeVar("Loop", bound=Callable[..., Any])

LOOPS: list[Any] = []
"""The compiled loops of all modules that are imported."""

# Without the interpreter lock. No fast-math, so that the same input gives the same bits everywhere. Division by zero
# gives infinity as in NumPy: a test for it would keep loops from being vectorised. No program in C calls a loop, and
# what it would call takes a twentieth of the time to compile.
_compile = partial(njit, nogil=True, error_model="numpy", no_cfunc_wrapper=True)


def jit(loop: Loop) -> Loop:
    """The loop, compiled at its first call and kept on disk for the next process, if there is a place.

    That is NUMBA_CACHE_DIR, the directory of the source or one in the user's home, the first that can be written.

    In a loop, copy one array to another entry by entry: an assignment of whole arrays brings text for its error, which
    takes two seconds to compile.
    """
    made: Any = _compile(loop)
    with suppress(RuntimeError):  # numba: no locator available
        made.enable_caching()
    LOOPS.append(made)
    return cast(Loop, made)


@intrinsic
def _multiply_add(_: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    return x(x, y, z), lambda _, builder, __, passed: builder.fma(*passed)


multiply_add = cast(Callable[[Any, Any, Any], Any], _multiply_add)
"""x·y + z of three floats of one precision, rounded once; for compiled loops."""


def kept_in() -> Path | None:
    """A directory in which loops are kept; None if there is no place for them."""
    path = LOOPS[0].stats.cache_path
    return None if path is None else Path(path)


def keep_in(directory: str) -> None:
    """Keep all loops in a directory, from now on."""
    config.CACHE_DIR = directory  # type: ignore[attr-defined]
    for loop in LOOPS:
        loop.enable_caching()


class NotKept(Exception):
    """A loop is not compiled yet, for arguments of some types, nor kept."""


class _Refusal(event.Listener):
    """Raises where its own thread begins to compile; others may."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def on_start(self, _: Any) -> None:
        if threading.get_ident() == self._thread:
            raise NotKept

    def on_end(self, _: Any) -> None:
        """Nothing to do."""


@contextmanager
def loading_only() -> Iterator[None]:
    """In this block a call of a loop that would have to be compiled raises NotKept."""
    with event.install_listener("numba:compile", _Refusal()):
        yield
