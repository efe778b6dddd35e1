"""The one-dimensional rule that all grids are made of."""

from functools import cache

from numpy.polynomial import hermite_e

from app.core.kernels.base import Matrix


@cache
def gauss_hermite(n_points: int) -> tuple[Matrix, Matrix]:
    """Nodes and weights for the standard normal law, exact for polynomials to degree 2·n_points − 1.

    The nodes are made exactly symmetric, 0 exactly 0, and the weights sum to 1.
    """
    nodes, weights = hermite_e.hermegauss(n_points)
    nodes = (nodes - nodes[::-1]) / 2
    weights = weights + weights[::-1]
    weights /= weights.sum()
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights
