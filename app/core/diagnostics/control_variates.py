"""Control variates: kernel estimates, pair by pair of rows, that know the mean and covariance of the frequencies."""

from enum import StrEnum

import numpy as np

from app.core.arrays import Array, Matrix
from app.core.errors import InvalidInput
from app.core.maps import FeatureMap
from app.core.progress import Pause, no_pause
from app.core.samplers.normal_law import NORMAL_LAW
from app.core.spec import Form

# Of a correction, absolute: that of features in float32.
_MOST_ROUNDING = 1e-7
# Of the product that gives the covariance, on one thread.
_PRODUCTS_PER_SECOND = 1 << 34


class Estimator(StrEnum):
    """An estimate of the kernel of two rows: the map's, or that corrected by one or two moments of its frequencies."""

    map = "map"
    cv1 = "cv1"
    cv2 = "cv2"


class ControlVariates:
    """Equation (10) of the moment-matching paper with the optimal coefficients β₁ = β₂ = k(δ).

    With δ = x − y and a map's weights ξ,

        cv1 = k̂ + k(δ) i δ·μ̂,   cv2 = cv1 + ½ k(δ) δᵀ(Σ̂ − Σ_l ξ_l Σ)δ,   μ̂ = Σ ξ_l w_l,   Σ̂ = Σ ξ_l w_l w_lᵀ.

    The coefficients are optimal for frequencies N(0, Σ) drawn independently; k(δ) in them is the exact kernel, so these
    are yardsticks, not features. In the real forms cov(cos w·δ, w·δ) = 0: the optimal β₁ is 0. Weights of a rule, of
    either sign, enter the sample moments; a set that has the moments already, such as a moment-matched one or a grid,
    is left as it is.

    Far from one another, where k(δ) is 0, so is the correction, which no moment outgrows.

    `before_long_call` is called if finding the moments may take more than a second.

    Raises:
        InvalidInput: the kernel is not one normal law's, features are normalised and so no mean over frequencies, or
            the moments leave the range of float64.
    """

    def __init__(self, feature_map: FeatureMap, before_long_call: Pause = no_pause) -> None:
        spec = feature_map.spec
        if spec.normalize:
            raise InvalidInput(
                "control variates correct a mean over frequencies, which normalised features do not make; take a map "
                "without normalize",
                "/estimators",
            )
        frequencies, weights, kernel, _ = feature_map.spectrum()
        deviations = kernel.normal_deviations(spec.input_dim)
        if deviations is None:
            raise InvalidInput(
                f"the coefficients of the control variates are known for {NORMAL_LAW} on all coordinates; kernel "
                f"{spec.kernel.kind} of this map is none of that kind",
                "/estimators",
            )
        self._is_complex = spec.form is Form.complex
        if frequencies.size * frequencies.shape[1] > _PRODUCTS_PER_SECOND:
            before_long_call()
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            self._mean: Matrix = weights @ frequencies
            self._excess: Matrix = (frequencies.T * weights) @ frequencies
            self._excess[np.diag_indices_from(self._excess)] -= weights.sum() * deviations**2
            # Of its norm, as a bound that does not square its entries.
            self._size = len(self._excess) * float(np.abs(self._excess).max())
        if not (np.isfinite(self._mean).all() and np.isfinite(self._size)):
            raise InvalidInput("the moments of the frequencies leave the range of float64", "/estimators")

    def estimate(
        self, estimator: Estimator, x: Matrix, y: Matrix, exact: Matrix, approximate: Array, pause: Pause = no_pause
    ) -> Array:
        """The estimates of a Gram block, (n, m), float64 or complex128.

        Rows x, (n, d), and y, (m, d), are as the kernel takes them (prepared); `exact` is their kernel, (n, m), and
        `approximate` are the inner products of their features. InvalidInput where a product of rows and moments leaves
        the range of float64.
        """
        if estimator is Estimator.map:
            return approximate
        with np.errstate(over="ignore", invalid="ignore"):  # refused by name below
            if self._is_complex:
                lags = np.subtract.outer(x @ self._mean, y @ self._mean)
                approximate = approximate + 1j * _corrected(exact, lags)
                pause()
            if estimator is Estimator.cv2:
                quadratic = self._quadratic(x, y, exact, pause)
                pause()
                approximate = approximate + _corrected(exact, quadratic) / 2
                pause()
        return approximate

    def _quadratic(self, x: Matrix, y: Matrix, exact: Matrix, pause: Pause) -> Matrix:
        """δᵀ(Σ̂ − Σ_l ξ_l Σ)δ, (n, m), of no use where the kernel is 0.

        Multiplied out, and from the differences themselves where rows are so long that little would be left of it.
        """
        x_excess = x @ self._excess
        quadratic: Matrix = np.add.outer(np.einsum("ij,ij->i", x_excess, x), np.einsum("ij,ij->i", y @ self._excess, y))
        pause()
        quadratic -= 2 * (x_excess @ y.T)
        pause()
        terms = np.add.outer(*(self._size * np.square(rows.astype(np.float64)).sum(axis=1) for rows in (x, y)))
        # Written so that what is not finite is off too.
        is_off = ~(np.finfo(np.float64).eps * terms * exact <= _MOST_ROUNDING) & (exact > 0)
        for i in np.flatnonzero(is_off.any(axis=1)):
            differences = y[is_off[i]].astype(np.float64) - x[i]
            quadratic[i, is_off[i]] = np.einsum("ij,ij->i", differences @ self._excess, differences)
            pause()
        return quadratic


def _corrected(exact: Matrix, control: Matrix) -> Matrix:
    """k(δ) times a control, 0 where the kernel is, whatever the control; InvalidInput where that is not finite."""
    product = exact * np.where(exact == 0, 0.0, control)
    if not np.isfinite(product).all():
        raise InvalidInput("products of rows and moments leave the range of float64", "/estimators")
    return product
