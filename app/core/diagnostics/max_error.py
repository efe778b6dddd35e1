"""The greatest error of a map's kernel over a ball of differences."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import row_blocks
from app.core.diagnostics.bounds import greatest_error_bound
from app.core.errors import InvalidInput
from app.core.kernels.correlation_rbf import CorrelationRbf
from app.core.maps import FeatureMap
from app.core.progress import Progress, packed, unpacked
from app.core.spec import Form

Matrix = NDArray[np.float64]

# Phases, or entries of points, held at a time.
_PHASES_PER_BLOCK = 1 << 20
# A sine and a cosine, in multiplications of a matrix product.
_OPERATIONS_PER_PHASE = 150


class DiameterError(TypedDict):
    """Of one diameter M: max and root mean square of |k(δ) − k̂(δ)| over the δ drawn from |δ| ≤ M."""

    diameter: float
    max: float
    rms: float
    bound: float | None


class MaxErrors(TypedDict):
    """The answer. `form` is `complex` where the imaginary part was measured too, else `cos_sin`."""

    form: str
    samples: int
    diameters: list[DiameterError]


def max_errors(
    feature_map: FeatureMap,
    diameters: Sequence[float],
    samples: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> MaxErrors:
    """Errors of the map's kernel over balls, after figure 1 of the quadrature paper.

    δ is uniform in the ball |δ|₂ ≤ M, in the unit of the vectors; the points of the smaller balls are those of the
    larger ones, shrunk. In high dimension nearly all lie near the surface. The greatest error over finitely many points
    is less than that over the ball. Two rows of a region of diameter M differ by no more than M.

    k̂(δ) = Σ ξ_l cos(w_l·δ) is computed from the frozen arrays in float64. The form `complex` has the error's imaginary
    part Σ ξ_l sin(w_l·δ) too. The form `phase` has noise that is no function of δ, and is not seen here. For a
    normalised map both kernels are divided by their value at 0. For kernel correlation_rbf, δ is the difference of two
    rows of unit length, so that diameters end at 2.

    Args:
        feature_map: what to measure.
        diameters: M, each positive.
        samples: how many δ.
        seed: of the δ.
        progress: told how many δ are done.

    Raises:
        InvalidInput: a diameter above 2 for kernel correlation_rbf, or one so large that phases leave float64.
    """
    spec = feature_map.spec
    frequencies, weights, kernel, at_zero = feature_map.spectrum()
    for i, diameter in enumerate(diameters):
        if isinstance(kernel, CorrelationRbf) and diameter > 2:
            raise InvalidInput(
                f"diameter is {diameter:.6g}; rows of unit length, which this kernel compares, differ by at most 2",
                f"/diameters/{i}",
            )
    is_complex = spec.form is Form.complex
    reach = float(np.abs(frequencies).sum(axis=1).max())
    if diameters and max(diameters) * max(reach, 1.0) > np.finfo(np.float64).max / 4:
        raise InvalidInput(f"a diameter of {max(diameters):.3g} makes phases that leave float64", "/diameters")
    progress = progress or Progress()
    state = unpacked(progress.restored())
    squares, largest = state.get("found", np.zeros((2, len(diameters))))
    restored = int(state.get("done", 0))
    origin = np.zeros((1, spec.input_dim))
    done = 0
    for lags in _unit_ball(samples, spec.input_dim, len(weights), seed):
        done += len(lags)
        if done <= restored:
            continue
        projected = lags @ frequencies.T
        for i, diameter in enumerate(diameters):
            phases = diameter * projected
            exact = kernel.gram(diameter * lags, origin)[:, 0] / at_zero
            error = np.abs(np.cos(phases) @ weights - exact)
            if is_complex:
                error = np.hypot(error, np.sin(phases) @ weights)
            squares[i] += error @ error
            largest[i] = max(largest[i], error.max())
        progress.report(done, samples)
        progress.checkpoint(partial(packed, found=np.array([squares, largest]), done=np.array(done)))
    found = zip(diameters, largest.tolist(), np.sqrt(squares / samples).tolist(), strict=True)
    return MaxErrors(
        form=(Form.complex if is_complex else Form.cos_sin).value,
        samples=samples,
        diameters=[
            DiameterError(diameter=diameter, max=most, rms=rms, bound=greatest_error_bound(feature_map, diameter))
            for diameter, most, rms in found
        ],
    )


def max_errors_operations(feature_map: FeatureMap, n_diameters: int, samples: int) -> int:
    """Multiplications that take as long as `max_errors`."""
    d = feature_map.spec.input_dim
    each = feature_map.n_frequencies * (d + _OPERATIONS_PER_PHASE * n_diameters)
    blocks = feature_map.spectrum().kernel.blocks(d)
    return samples * (each + n_diameters * (_OPERATIONS_PER_PHASE + sum(block.dim(d) for block in blocks)))


def max_errors_bytes(feature_map: FeatureMap) -> int:
    """Memory that `max_errors` takes: the set in float64, and phases and points of a block, with what they give."""
    set_bytes = 2 * 8 * feature_map.n_frequencies * feature_map.spec.input_dim
    return set_bytes + 8 * 8 * max(_PHASES_PER_BLOCK, feature_map.n_frequencies, feature_map.spec.input_dim)


def _unit_ball(n: int, d: int, n_frequencies: int, seed: int) -> Iterator[Matrix]:
    """Points uniform in the ball of radius 1, (n, d), the same for any number of frequencies, some at a time."""
    rng = np.random.Generator(np.random.PCG64(seed))
    for drawn in row_blocks(n, _PHASES_PER_BLOCK // d):
        points = rng.standard_normal((drawn.stop - drawn.start, d))
        points *= rng.random((len(points), 1)) ** (1 / d) / np.linalg.norm(points, axis=1, keepdims=True)
        for block in row_blocks(len(points), _PHASES_PER_BLOCK // n_frequencies):
            yield points[block]
