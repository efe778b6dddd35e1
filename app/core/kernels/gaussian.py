"""The Gaussian kernel, isotropic or with one length scale per coordinate."""

from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator
from scipy.special import gammaincinv

from app.core.arrays import Matrix
from app.core.errors import InvalidInput
from app.core.kernels.base import LENGTH_SCALE, LengthScale, ProductKernel
from app.core.model import RFF
from app.core.quantiles import NORMAL, quantiles


class Gaussian(ProductKernel):
    """exp(−Σ δ_j²/(2σ_j²)); the coordinates of a frequency are N(0, σ_j⁻²).

    Give the scale once, as `length_scale`, `sigma` (σ) or `gamma` (1/(2σ²)); answers show it as `length_scale`.

    Choose when:
        Use it as the default, for smooth functions; all samplers except the hashing ones support it. A good first
        length scale is the mean distance of a row to its tenth nearest neighbour.
    """

    source = f"{RFF}, section 3"
    standard_deviation = 1.0

    kind: Literal["gaussian"]
    length_scale: LengthScale = Field(default_factory=float, description=LENGTH_SCALE)  # unlike a default, not shown
    sigma: LengthScale | None = Field(None, exclude=True)
    """σ_j, another name for length_scale."""
    gamma: LengthScale | None = Field(None, exclude=True)
    """1/(2σ_j²), instead of length_scale: one number, or one per coordinate."""

    @model_validator(mode="after")
    def _resolve_aliases(self) -> Self:
        named = sorted({"length_scale", "sigma", "gamma"} & self.model_fields_set)
        given = [name for name in named if getattr(self, name) is not None]
        if len(given) != 1:
            came = " and ".join(given) if given else "no scale"
            raise InvalidInput(f"expected exactly one of length_scale, sigma, gamma, got {came}", "/kernel")
        scale = getattr(self, given[0])
        if given == ["gamma"]:
            # Two roots, because 2γ or 1/(2γ) may be outside the range of float64.
            sigma = np.sqrt(0.5) / np.sqrt(np.asarray(scale, dtype=np.float64))
            scale = tuple(sigma.tolist()) if isinstance(scale, tuple) else float(sigma)
        # The model is frozen, but its own validator may still set a field.
        object.__setattr__(self, "length_scale", scale)
        return self

    @property
    def scale_field(self) -> str:
        """Name under which the client gave the scale: `length_scale`, `sigma` or `gamma`."""
        return next((name for name in ("sigma", "gamma") if getattr(self, name) is not None), "length_scale")

    def normal_deviations(self, input_dim: int) -> Matrix:
        """Return 1/σ_j."""
        return self.scaled_deviations(1.0, input_dim)

    def profile(self) -> "Gaussian":
        """Return the kernel as a function of ‖δ/σ‖."""
        return Gaussian(kind="gaussian", length_scale=1.0)

    def radial_quantile(self, uniforms: Matrix, dim: int) -> Matrix:
        """Return quantiles of the chi law with `dim` degrees of freedom, elementwise."""
        return np.asarray(np.sqrt(2 * gammaincinv(dim / 2, uniforms)), np.float64)

    def standard_characteristic(self, lags: Matrix) -> Matrix:
        """Return exp(−β²/2)."""
        return np.asarray(np.exp(-(lags**2) / 2), np.float64)

    def standard_quantile(self, uniforms: Matrix) -> Matrix:
        """Return Φ⁻¹ of the uniforms."""
        return quantiles(NORMAL, uniforms)

    def gram(self, x: Matrix, y: Matrix) -> Matrix:
        """Compute exp(−‖δ/σ‖²/2) from differences: expanding the square would cancel digits for close rows."""
        gram = self.distances(x, y, "sqeuclidean")
        gram *= -0.5
        return np.exp(gram, out=gram)
