"""The Gaussian kernel of directions."""

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from app.core.arrays import Matrix, Rows, leading_columns
from app.core.errors import InvalidInput
from app.core.kernels.base import Block, ShiftInvariantKernel
from app.core.kernels.gaussian import Gaussian
from app.core.kernels.rounding import OfDirections
from app.core.model import GMM
from app.core.norms import unit_rows


class CorrelationRbf(ShiftInvariantKernel):
    """exp(−γ(1 − ρ(x, z))), ρ the cosine of x and z: independent of the length of the rows.

    On rows of unit length it is the Gaussian kernel with σ = γ^(−1/2); rows are scaled to unit length first.

    Choose when:
        Use it if the direction of a row matters and its length does not, as for word counts. The source compares gmm
        with this kernel. Do not use it for rows that are all zero, which are refused.
    """

    source = f"{GMM}, section 2, (14)"
    compares_unit_rows = True

    kind: Literal["correlation_rbf"]
    gamma: Annotated[float, Field(gt=0)]
    """γ, dimensionless; the kernel is exp(−γ) for orthogonal rows."""

    @property
    def scale_field(self) -> str:
        """Name of the field of γ."""
        return "gamma"

    def blocks(self, input_dim: int) -> tuple[Block, ...]:
        """Return the Gaussian kernel of unit rows as the only summand."""
        return (Block(self._gaussian()),)

    def normal_deviations(self, input_dim: int) -> Matrix:
        """Return the frequency deviations of the Gaussian kernel of unit rows."""
        return self._gaussian().normal_deviations(input_dim)

    def profile(self) -> Gaussian:
        """Return the kernel as a function of the distance of unit rows."""
        return self._gaussian().profile()

    def rounding(self, dtype: np.dtype[np.floating]) -> OfDirections:
        """Return the rounding error, which depends on γ alone and is the same for all rows."""
        return OfDirections(dtype, self.gamma)

    def prepare(self, rows: Rows, pointer: str = "", first: int = 0) -> Rows:
        """Return rows scaled to unit L2 norm; InvalidInput names all-zero rows, which have no direction."""
        return unit_rows(rows, pointer, first)

    def correlated_pairs(self, correlations: Matrix, input_dim: int) -> tuple[Rows, Rows]:
        """Return pairs of unit rows whose cosine is ρ; InvalidInput in one dimension, where ρ can only be ±1."""
        if input_dim == 1 and (np.abs(correlations) < 1).any():
            raise InvalidInput("rows of one entry have no correlations but -1 and 1", "/correlations")
        x = np.eye(1, 2).repeat(len(correlations), axis=0)
        y = np.stack([correlations, np.sqrt(1 - correlations**2)], axis=1)
        return leading_columns(x, input_dim), leading_columns(y, input_dim)

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Compute the exact kernel block of unit rows."""
        return self._gaussian().gram(x, y)

    def _gaussian(self) -> Gaussian:
        return Gaussian(kind="gaussian", length_scale=1 / math.sqrt(self.gamma))
