"""The variance of a map's kernel estimate for pairs of rows: in closed form, and simulated over seeds."""

from collections.abc import Callable
from functools import partial
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.core.arrays import Array, Rows, dense
from app.core.diagnostics.closed_forms import ClosedForms, fourier_variances, hashing_variances, own_closed_form
from app.core.diagnostics.random_pairs import map_seeds
from app.core.errors import InvalidInput
from app.core.hashing.estimates import collision_rate, kernel_estimate, rbf_estimate
from app.core.kernels.correlation_rbf import CorrelationRbf
from app.core.maps import ConsistentSamplingMap, FeatureMap, FourierMap
from app.core.progress import Progress, packed, unpacked
from app.core.samplers.base import FrequencySampler

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
    seeds = map_seeds(seed, repeats)
    if isinstance(feature_map, FourierMap):
        if isinstance(feature_map.spec.sampler, FrequencySampler) and feature_map.spec.sampler.learns:
            kind = feature_map.spec.sampler.kind
            raise InvalidInput(
                f"sampler {kind} learns its set, which takes too long to do for every one of {repeats} maps"
            )
        if gamma is not None:
            raise InvalidInput("gamma is for the RBF kernel estimated from hashes, kernel gmm", "/gamma")
        return _of_fourier(feature_map, x, y, seeds, progress or Progress())
    if gamma is not None and feature_map.kernel.p != 1:
        raise InvalidInput(f"gamma is for the min-max kernel of power 1; this map has {feature_map.kernel.p}", "/gamma")
    return _of_hashing(feature_map, x, y, gamma, seeds, progress or Progress())


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
    n, d = len(rho), spec.input_dim
    first, second = np.ones(n), np.zeros(n)
    if isinstance(feature_map, ConsistentSamplingMap):
        root = np.sqrt((1 - rho) / 2)
        g = (1 - root) / (1 + root)
        # Opposite signs have kernel 0 where equal ones would need a row of zeros.
        first = np.where(g > 0, g ** (1 / feature_map.kernel.p), -1.0)
    elif isinstance(spec.kernel, CorrelationRbf):
        if d == 1 and (np.abs(rho) < 1).any():
            raise InvalidInput("rows of one entry have no correlations but -1 and 1", "/correlations")
        first, second = rho, np.sqrt(1 - rho**2)
    else:
        raise InvalidInput(
            f"correlations say nothing of kernel {spec.kernel.kind}; give pairs of vectors", "/correlations"
        )
    center = getattr(feature_map.kernel, "center", None)
    scale = 1.0 if center is None else max(1.0, abs(center[0]))
    x = _rows(np.eye(1, 2).repeat(n, axis=0) * scale, d)
    y = _rows(np.stack([first, second], axis=1) * scale, d)
    if center is None:
        return x.astype(spec.numpy_dtype), y.astype(spec.numpy_dtype)
    return (x.toarray() + center).astype(spec.numpy_dtype), (y.toarray() + center).astype(spec.numpy_dtype)


def _rows(values: Numbers, d: int) -> sparse.csr_array:
    """Rows (n, d) that begin with these values (n, 2) and go on with zeros."""
    values = values[:, :d]
    n, width = values.shape
    columns, ends = np.tile(np.arange(width), n), np.arange(0, n * width + 1, width)
    return sparse.csr_array((values.ravel(), columns, ends), shape=(n, d))


def _of_fourier(feature_map: FourierMap, x: Rows, y: Rows, seeds: list[int], progress: Progress) -> Variances:
    kernel = feature_map.kernel
    lags = dense(kernel.prepared(x, "/x")) - dense(kernel.prepared(y, "/y"))
    exact, closed = fourier_variances(feature_map, lags)

    def estimated(seed: int) -> Array:
        spec = feature_map.spec.model_copy(update={"seed": seed})
        made = FourierMap(spec, FourierMap.build(spec).arrays)
        of_x, of_y = made.transform(x), made.transform(y).conj()
        if made.signature is not None:
            of_x *= np.tile(made.signature, of_x.shape[1] // len(made.signature))
        products: Array = np.einsum("ij,ij->i", of_x, of_y, dtype=np.result_type(of_x, np.float64))
        return products

    estimates = _of_every(seeds, estimated, x.shape[0], np.complex128, progress)
    own = own_closed_form(feature_map)
    return Variances(
        form=feature_map.spec.form.value,
        s=feature_map.n_frequencies,
        repeats=len(seeds),
        own=own,
        pairs=[
            PairVariance(
                exact=float(exact[i]),
                closed_form=None if own is None else closed[i][own],
                closed_forms=closed[i],
                empirical=_empirical(estimates[:, i]),
                rbf_empirical=None,
            )
            for i in range(x.shape[0])
        ],
    )


def _of_hashing(
    feature_map: ConsistentSamplingMap, x: Rows, y: Rows, gamma: float | None, seeds: list[int], progress: Progress
) -> Variances:
    feature_map.refuse_empty(x, "/x")
    feature_map.refuse_empty(y, "/y")
    s = feature_map.n_output
    exact = feature_map.exact_pairs(x, y)
    closed = hashing_variances(exact, s, gamma)

    def rate(seed: int) -> Array:
        made = ConsistentSamplingMap(feature_map.spec.model_copy(update={"seed": seed}))
        return collision_rate(made.codes(x), made.codes(y))

    rates = _of_every(seeds, rate, x.shape[0], np.float64, progress)
    rbf = None if gamma is None else rbf_estimate(kernel_estimate(rates, s, 0.0), gamma).value
    return Variances(
        form=None,
        s=s,
        repeats=len(seeds),
        own="gcws",
        pairs=[
            PairVariance(
                exact=float(exact[i]),
                closed_form=closed[i]["gcws"],
                closed_forms=closed[i],
                empirical=_empirical(rates[:, i]),
                rbf_empirical=None if rbf is None else _empirical(rbf[:, i]),
            )
            for i in range(x.shape[0])
        ],
    )


def _of_every(seeds: list[int], compute: Callable[[int], Array], n: int, dtype: type, progress: Progress) -> Array:
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
