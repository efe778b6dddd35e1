"""The box discrepancy of a map's set on boxes of several scales, beside what Monte Carlo frequencies would have."""

from collections.abc import Sequence
from functools import partial
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from app.core.discrepancy.box_discrepancy import BoxDiscrepancy
from app.core.maps import FeatureMap
from app.core.progress import Parts, Progress

# A factor of the discrepancy, sine and product, in multiplications of a matrix product.
_OPERATIONS_PER_FACTOR = 20
# What one frequency costs beside its pairs, in pairs.
_PAIRS_PER_FREQUENCY = 400
# Frequencies, and what pairs of them are computed from, in float64, by coordinate.
_BYTES_PER_COORDINATE = 64
# A side of the box, and the integrals over it.
_BYTES_PER_SIDE = 2500


class ScaleError(TypedDict):
    """On the box times `box_scale`; see `Measured`."""

    box_scale: float
    discrepancy_squared: float | None
    log_discrepancy_squared: float | None
    normalized: float
    expected_monte_carlo: float
    ratio: float | None


class BoxErrors(TypedDict):
    """The answer. `box` has the half width of each coordinate."""

    box: list[float]
    scales: list[ScaleError]


def box_errors(
    feature_map: FeatureMap,
    box: NDArray[np.float64],
    scales: Sequence[float],
    threads: int,
    progress: Progress | None = None,
) -> BoxErrors:
    """Box discrepancies of the map's frequencies and weights; of normalised features, with weights that sum to 1.

    Args:
        feature_map: of a product kernel.
        box: b, (d,).
        scales: factors of it.
        threads: how many to use.
        progress: told how many scales are done.

    Raises:
        InvalidInput: the kernel is none, or a box is too wide.
    """
    frequencies, weights, kernel, _ = feature_map.spectrum()

    def at(scale: float) -> ScaleError:
        with np.errstate(over="ignore"):  # a box of infinity is refused by name
            scaled = scale * box
        found = BoxDiscrepancy(kernel, scaled, threads).measured(frequencies, weights)
        return ScaleError(
            box_scale=scale,
            discrepancy_squared=found.squared,
            log_discrepancy_squared=found.log_squared,
            normalized=found.normalized,
            expected_monte_carlo=found.expected_monte_carlo,
            ratio=found.ratio,
        )

    progress = progress or Progress()
    parts, errors = Parts(progress), []
    for step, scale in enumerate(scales):
        progress.report(step, len(scales))
        errors.append(parts.once(repr(scale), partial(at, scale)))
    return BoxErrors(box=box.tolist(), scales=errors)


def box_errors_operations(feature_map: FeatureMap, n_scales: int) -> int:
    """Multiplications that take as long as `box_errors`."""
    s = feature_map.n_frequencies
    return _OPERATIONS_PER_FACTOR * n_scales * (s * (s + _PAIRS_PER_FREQUENCY) * feature_map.spec.input_dim // 2)


def box_errors_bytes(feature_map: FeatureMap) -> int:
    """Memory that `box_errors` takes."""
    d = feature_map.spec.input_dim
    return _BYTES_PER_COORDINATE * feature_map.n_frequencies * d + _BYTES_PER_SIDE * d
