"""The variance of a map's kernel estimate for pairs of rows: in closed form, and simulated over seeds."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Rows
from app.core.diagnostics.closed_forms import ClosedForms, closed_forms_of_pairs
from app.core.diagnostics.random_pairs import map_seeds
from app.core.errors import InvalidInput
from app.core.hashing.estimates import kernel_estimate, rbf_estimate
from app.core.maps import FeatureMap, made
from app.core.progress import Progress, packed, unpacked

Numbers = NDArray[np.float64]


class Empirical(TypedDict):
    """Over maps of other seeds: mean, variance E|k̂ − E k̂|², and the variance's own standard error."""

    mean: float
    variance: float
    standard_error: float


class PairVariance(TypedDict):
    """Of one pair of rows. `closed_form` is the one of `closed_forms` that is this map's."""

    exact: float
    closed_form: float | None
    closed_forms: ClosedForms
    empirical: Empirical
    rbf_empirical: Empirical | None


class Variances(TypedDict):
    """The answer. `form` is whose variance it is (None for hashes), `own` the name of the map's own closed form."""

    form: str | None
    s: int
    repeats: int
    own: str | None
    pairs: list[PairVariance]


def variances(
    feature_map: FeatureMap,
    x: Rows,
    y: Rows,
    *,
    gamma: float | None = None,
    repeats: int = 200,
    seed: int = 0,
    progress: Progress | None = None,
) -> Variances:
    """Variance of the estimate of k(x_i, y_i) for each i.

    Simulated with maps of the same spec and other seeds, of which a map that has nothing random makes no two: its
    variance is 0. Closed forms speak of independent frequencies or hashes; the map's own is among them for samplers
    monte_carlo, gcws and moment_matching over monte_carlo.

    Args:
        feature_map: Fourier or hashing.
        x: rows behind the gate.
        y: as many.
        gamma: for hashes of power 1, of the RBF kernel to estimate from them too (GMM paper, theorem 4).
        repeats: number of maps, 2 or more.
        seed: of the seeds.
        progress: told how many maps are done.

    Raises:
        InvalidInput: x and y are not as many rows, gamma has no meaning, or rows have no kernel.
    """
    if x.shape[0] != y.shape[0]:
        raise InvalidInput(f"x has {x.shape[0]} rows and y {y.shape[0]}; pairs need as many", "/y")
    sampler = feature_map.spec.sampler
    if sampler.learns:
        raise InvalidInput(
            f"sampler {sampler.kind} learns its set, which takes too long to do for every one of {repeats} maps"
        )
    if gamma is not None and (refusal := feature_map.gamma_refusal()) is not None:
        raise InvalidInput(refusal, "/gamma")
    feature_map.check_rows(x, "/x")
    feature_map.check_rows(y, "/y")
    exact, (own, closed) = feature_map.exact_pairs(x, y), feature_map.closed_forms(x, y, gamma)
    of_pairs = closed_forms_of_pairs(closed, len(exact))

    def estimated(seed: int) -> Array:
        return made(feature_map.spec.model_copy(update={"seed": seed})).estimated_pairs(x, y)

    dtype = np.result_type(feature_map.gram_dtype, np.float64)
    estimates = _of_every(map_seeds(seed, repeats), estimated, len(exact), dtype, progress or Progress())
    rbf = None
    if gamma is not None:
        rbf = rbf_estimate(kernel_estimate(estimates, feature_map.n_frequencies, 0.0), gamma).value
    return Variances(
        form=None if feature_map.form is None else feature_map.form.value,
        s=feature_map.n_frequencies,
        repeats=repeats,
        own=own,
        pairs=[
            PairVariance(
                exact=float(exact[i]),
                closed_form=None if own is None else float(closed[own][i]),
                closed_forms=of_pairs[i],
                empirical=_empirical(estimates[:, i]),
                rbf_empirical=None if rbf is None else _empirical(rbf[:, i]),
            )
            for i in range(len(exact))
        ],
    )


def correlated_pairs(feature_map: FeatureMap, correlations: list[float]) -> tuple[Rows, Rows]:
    """Pairs of rows, in the map's dtype, for correlations ρ.

    For kernel correlation_rbf, rows whose cosine is ρ. For kernel gmm, rows whose min-max kernel is
    g = (1 − √((1 − ρ)/2))/(1 + √((1 − ρ)/2)), the limit for rows of many coordinates on which theorem 4 of the GMM
    paper rests; the pairs have one coordinate off the centre.

    Raises:
        InvalidInput: another kernel, a ρ outside [−1, 1], or one dimension, which has no ρ but ±1.
    """
    spec = feature_map.spec
    rho = np.array(correlations, np.float64)
    outside = np.flatnonzero(~(np.abs(rho) <= 1))
    if outside.size:
        raise InvalidInput(f"correlation {rho[outside[0]]:.6g} is outside [-1, 1]", f"/correlations/{outside[0]}")
    x, y = feature_map.kernel.correlated_pairs(rho, spec.input_dim)
    return x.astype(spec.numpy_dtype), y.astype(spec.numpy_dtype)


def _of_every(
    seeds: list[int], compute: Callable[[int], Array], n: int, dtype: np.dtype[Any], progress: Progress
) -> Array:
    """What maps of these seeds give for n pairs, (seeds, n)."""
    found: Array = np.empty((len(seeds), n), dtype)
    known = unpacked(progress.restored()).get("found", found[:0])
    found[: len(known)] = known
    for done in range(len(known), len(seeds)):
        progress.report(done, len(seeds))
        found[done] = compute(seeds[done])
        progress.checkpoint(partial(packed, found=found[: done + 1]))
    return found


def _empirical(estimates: NDArray[np.complex128] | Numbers) -> Empirical:
    """Of the estimates of one pair, one a map."""
    mean = estimates.mean()
    squares = np.square(np.abs(estimates - mean))
    n = len(estimates)
    return Empirical(
        mean=float(mean.real),
        variance=float(squares.sum() / (n - 1)),
        standard_error=float(squares.std() / np.sqrt(n)),
    )
