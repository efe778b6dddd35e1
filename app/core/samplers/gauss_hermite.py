"""The one-dimensional rule that all grids are made of."""

from functools import cache

from numpy.polynomial import hermite_e

from app.core.errors import InvalidInput
from app.core.kernels.base import Matrix, SpectralKernel
from app.core.samplers.base import NORMAL_LAW


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


def deviations_for_grid(kernel: SpectralKernel, input_dim: int, kind: str, law: str = NORMAL_LAW) -> Matrix:
    """Scales of the normal law that a Gauss–Hermite grid integrates against.

    Raises:
        InvalidInput: the kernel's frequencies have another law.
    """
    deviations = kernel.normal_deviations(input_dim)
    if deviations is None:
        raise InvalidInput(
            f"{kind} is a rule for {law}; for this kernel sampler sobol works",
            "/sampler/kind",
        )
    return deviations
