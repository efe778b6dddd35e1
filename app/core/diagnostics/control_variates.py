"""Control variates: kernel estimates, pair by pair of rows, that know the mean and covariance of the frequencies."""

from enum import StrEnum

import numpy as np

from app.core.arrays import Array
from app.core.errors import InvalidInput
from app.core.kernels.base import Matrix
from app.core.maps import FourierMap
from app.core.samplers.base import NORMAL_LAW
from app.core.spec import Form


class Estimator(StrEnum):
    """What estimates the kernel of two rows."""

    map = "map"
    cv1 = "cv1"
    cv2 = "cv2"


ESTIMATORS = {
    Estimator.map: "The inner product of the features.",
    Estimator.cv1: "With the first moment of the frequencies as a control. It corrects the imaginary part of the form "
    "complex; in the real forms the best coefficient is 0, and cv1 is the map.",
    Estimator.cv2: "With the first two moments as controls; to first order what moment matching attains with features.",
}


class ControlVariates:
    """Equation (10) of the moment-matching paper with the optimal coefficients β₁ = β₂ = k(δ).

    With δ = x − y and a map's weights ξ,

        cv1 = k̂ + k(δ) i δ·μ̂,   cv2 = cv1 + ½ k(δ) δᵀ(Σ̂ − Σ_l ξ_l Σ)δ,   μ̂ = Σ ξ_l w_l,   Σ̂ = Σ ξ_l w_l w_lᵀ.

    The coefficients are optimal for frequencies N(0, Σ) drawn independently; k(δ) in them is the exact kernel, so these
    are yardsticks, not features. In the real forms cov(cos w·δ, w·δ) = 0: the optimal β₁ is 0. Weights of a rule, of
    either sign, enter the sample moments; a set that has the moments already, such as a moment-matched one or a grid,
    is left as it is.

    Raises:
        InvalidInput: the kernel is not one normal law's, or features are normalised and so no mean over frequencies.
    """

    def __init__(self, feature_map: FourierMap) -> None:
        spec = feature_map.spec
        if spec.normalize:
            raise InvalidInput(
                "control variates correct a mean over frequencies, which normalised features do not make; take a map "
                "without normalize",
                "/estimators",
            )
        blocks = feature_map.kernel.blocks(spec.input_dim)
        deviations = blocks[0].kernel.normal_deviations(spec.input_dim) if len(blocks) == 1 else None
        if deviations is None or blocks[0].coordinates is not None:
            raise InvalidInput(
                f"the coefficients of the control variates are known for {NORMAL_LAW} on all coordinates; kernel "
                f"{spec.kernel.kind} of this map is none of that kind",
                "/estimators",
            )
        frequencies = feature_map.arrays["frequencies"].astype(np.float64)
        weights = feature_map.arrays["weights"].astype(np.float64)
        self._is_complex = spec.form is Form.complex
        self._mean: Matrix = weights @ frequencies
        self._excess: Matrix = (frequencies.T * weights) @ frequencies
        self._excess[np.diag_indices_from(self._excess)] -= weights.sum() * deviations**2

    def estimate(self, estimator: Estimator, x: Matrix, y: Matrix, exact: Matrix, approximate: Array) -> Array:
        """The estimates of a Gram block, float64 or complex128.

        Args:
            estimator: which one.
            x: rows as the kernel takes them (prepared), (n, d).
            y: the same, (m, d).
            exact: their kernel, (n, m).
            approximate: the inner products of their features, (n, m).
        """
        if estimator is not Estimator.map and self._is_complex:
            approximate = approximate + 1j * exact * np.subtract.outer(x @ self._mean, y @ self._mean)
        if estimator is Estimator.cv2:
            x_excess = x @ self._excess
            quadratic = np.add.outer(np.einsum("ij,ij->i", x_excess, x), np.einsum("ij,ij->i", y @ self._excess, y))
            quadratic -= 2 * (x_excess @ y.T)
            approximate = approximate + exact * quadratic / 2
        return approximate
