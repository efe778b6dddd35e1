"""Draws of the Sobol' sequence, for the samplers that are made of it."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import qmc

from app.core.kernels.base import Matrix
from app.core.samplers.advice import SizeAdvice

MOST_DIMENSIONS: int = qmc.Sobol.MAXDIM
# What a float64 in (0, 1) holds exactly. 30 bits, the engine's default, would put scrambled coordinates on exact zeros,
# and an engine ends after as many points as its bits can tell apart.
BITS = 52
# Points drawn between two releases of the interpreter lock, in coordinates.
_COORDINATES_PER_DRAW = 1 << 18


def sobol_blocks(n: int, d: int, scramble_seed: int | None, skip_origin: bool) -> Iterator[tuple[slice, Matrix]]:
    """Rows of the first n points and these points, (rows, d), block by block.

    Args:
        n: number of points.
        d: their dimension.
        scramble_seed: seed of the engine's scrambling, None for the plain sequence.
        skip_origin: whether to start at the second point.
    """
    engine = qmc.Sobol(d, scramble=scramble_seed is not None, bits=BITS, rng=scramble_seed)
    if skip_origin:
        engine.random(1)  # fast_forward of SciPy 1.17 fails beyond 32 bits
    # Powers of two first: the engine complains of an unbalanced first draw, which balance_warnings says better.
    most = 1 << max(0, (_COORDINATES_PER_DRAW // d).bit_length() - 1)
    done = 0
    while done < n:
        some = min(most, 1 << ((n - done).bit_length() - 1))
        yield slice(done, done + some), np.asarray(engine.random(some))
        done += some


def balance_warnings(kind: str, n: int) -> list[str]:
    """What to tell of n points of a sampler that is balanced at powers of two only."""
    if n & (n - 1) == 0:
        return []
    lower = 1 << (n.bit_length() - 1)
    return [SizeAdvice(f"{kind} is balanced only at a power of two", n, lower, 2 * lower)]
