"""How inner loops are compiled."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from numba import njit
from numba.extending import intrinsic

Loop = TypeVar("Loop", bound=Callable[..., Any])

# Without the interpreter lock. No fast-math, so that the same input gives the same bits everywhere. Division by zero
# gives infinity as in NumPy: a test for it would keep loops from being vectorised.
_compile = partial(njit, nogil=True, error_model="numpy")


def compiled(loop: Loop) -> Loop:
    """The loop, compiled at its first call and kept on disk for the next process, if there is a place.

    That is NUMBA_CACHE_DIR, the directory of the source or one in the user's home, the first that can be written. If
    none can, each process compiles for itself and is ready some 20 s later.
    """
    try:
        made = _compile(cache=True)(loop)
    except RuntimeError:  # numba: no locator available
        made = _compile()(loop)
    return cast(Loop, made)


@intrinsic
def _multiply_add(_: Any, x: Any, y: Any, z: Any) -> tuple[Any, Any]:
    return x(x, y, z), lambda _, builder, __, passed: builder.fma(*passed)


multiply_add = cast(Callable[[Any, Any, Any], Any], _multiply_add)
"""x·y + z of three floats of one precision, rounded once; for compiled loops."""
