"""Compilation of inner loops, and the cache of compiled loops on disk."""

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
"""All compiled loops of the modules imported so far."""

# `nogil`: loops release the interpreter lock. No fast-math: the same input yields the same bits everywhere.
# `error_model`: division by zero yields infinity as in NumPy, as a test for zero would prevent vectorisation.
# `no_cfunc_wrapper`: no C program calls a loop, and the wrapper would take a twentieth of the compile time.
_compile = partial(njit, nogil=True, error_model="numpy", no_cfunc_wrapper=True)


def jit(loop: Loop) -> Loop:
    """Return the loop, compiled at its first call and, if possible, cached on disk for later processes.

    The cache directory is the first that can be written of NUMBA_CACHE_DIR, the directory of the source and one in the
    user's home.

    In a loop, copy one array to another entry by entry: assigning a whole array compiles the text of its error message
    too, which takes two seconds.
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
"""x·y + z of three floats of the same precision, rounded once; for compiled loops."""


def kept_in() -> Path | None:
    """Return a directory in which compiled loops are cached, the same in all processes; None if there is none."""
    paths = [loop.stats.cache_path for loop in LOOPS]  # in the order of imports, which processes differ in
    return None if None in paths else Path(min(paths))


def keep_in(directory: str) -> None:
    """Cache all loops in a directory from now on."""
    config.CACHE_DIR = directory  # type: ignore[attr-defined]
    for loop in LOOPS:
        loop.enable_caching()


class NotKept(Exception):
    """Raised when a loop is neither compiled for the types of its arguments nor in the cache."""


class _Refusal(event.Listener):
    """Listener that raises NotKept when the thread that created it starts to compile; other threads may compile."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def on_start(self, _: Any) -> None:
        if threading.get_ident() == self._thread:
            raise NotKept

    def on_end(self, _: Any) -> None:
        """Do nothing."""


@contextmanager
def loading_only() -> Iterator[None]:
    """Raise NotKept, inside the `with` block, when a call of a loop would have to compile it."""
    with event.install_listener("numba:compile", _Refusal()):
        yield
