"""The variance of a map's kernel estimate for pairs of rows: in closed form, and simulated over seeds."""

from functools import partial
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import TypedDict

from app.core.arrays import Array, Rows
from app.core.building import Building
from app.core.diagnostics.base import Diagnostic, Finding, GivenRows, Seed, Takes
from app.core.diagnostics.closed_forms import ClosedForms, closed_forms_of_pairs
from app.core.diagnostics.random_pairs import map_seeds
from app.core.errors import InvalidInput
from app.core.hashing.estimates import kernel_estimate, rbf_estimate
from app.core.kernels.base import Positive
from app.core.maps import FeatureMap, family, made
from app.core.maps.results import Gives
from app.core.papers import GMM, MM
from app.core.progress import Pausing, Progress, packed, unpacked

Numbers = NDArray[np.float64]


# Samples of two rows, and where they agree; estimates of one pair by one map; the closed forms and figures of a pair.
_BYTES_PER_HASH, _BYTES_PER_ESTIMATE, _BYTES_PER_PAIR = 40, 80, 2000


class Empirical(TypedDict):
    """Of the estimates of one pair by maps of other seeds."""

    mean: Annotated[float, Field(description="Of the estimates.")]
    variance: Annotated[float, Field(description="E|k̂ − E k̂|².")]
    standard_error: Annotated[float, Field(description="Of the variance.")]


class PairVariance(TypedDict):
    """Of one pair of rows."""

    exact: Annotated[float, Field(description="The kernel itself.")]
    closed_form: Annotated[
        float | None, Field(description="The one of `closed_forms` that is this map's; null where none is known.")
    ]
    closed_forms: ClosedForms
    empirical: Empirical
    rbf_empirical: Annotated[Empirical | None, Field(description="With gamma: of the RBF kernel's estimate.")]


class Variances(TypedDict):
    """Variances of the estimate of k(x_i, y_i) for each pair i."""

    form: Annotated[str | None, Field(description="Whose variance it is; null for hashes.")]
    s: Annotated[int, Field(description="Frequencies, or hashes.")]
    repeats: Annotated[int, Field(description="Maps of other seeds that were simulated with.")]
    own: Annotated[str | None, Field(description="The name of the map's own closed form; null where none is known.")]
    pairs: list[PairVariance]


class Variance(Diagnostic):
    """Closed-form variances of the estimate for pairs of rows, beside an empirical one over maps of other seeds."""

    kind = "variance"
    takes = Takes.optional_pairs
    answer = Variances
    source = f"{MM}, corollary 1; {GMM}, theorems 2 to 4"
    choose_when = "To see which estimator's noise is least at the similarities that matter to you."

    correlations: Annotated[
        tuple[Annotated[float, Field(ge=-1, le=1)], ...] | None,
        Field(min_length=1, max_length=1000, description="Cosines ρ of pairs, instead of x and y."),
    ] = None
    gamma: Annotated[Positive | None, Field(description="Of the RBF kernel estimated from hashes too.")] = None
    repeats: Annotated[int, Field(ge=2, le=10_000, description="Maps of other seeds to simulate with.")] = 200
    seed: Seed = 0

    def check(self, feature_map: FeatureMap, rows: GivenRows) -> None:
        """Refuse pairs that are missing, there twice, or no pairs."""
        del feature_map
        if (self.correlations is None) != (len(rows) == 2) or len(rows) == 1:
            raise InvalidInput("x and y, or correlations instead of both, are wanted", "/x")

    def made_rows_bytes(self, feature_map: FeatureMap) -> int:
        """Rows at a centre are dense."""
        if self.correlations is None or not feature_map.kernel.is_centered:
            return 0
        return 16 * len(self.correlations) * feature_map.spec.input_dim

    def memory_bytes(self, feature_map: FeatureMap, rows: GivenRows) -> int:
        """Memory of rows in float64, a map, what it makes of them, all estimates, and the answer."""
        x, y = self._pairs(feature_map, rows)
        n = int(max(x.shape[0], y.shape[0]))
        made = family(feature_map.spec).drawing_bytes(feature_map.spec)
        if Gives.features in feature_map.gives:
            # Features of x, of y, these conjugate, and phases.
            made += 4 * feature_map.gram_dtype.itemsize * feature_map.n_output * n + 2 * feature_map.bytes
        else:
            made += _BYTES_PER_HASH * feature_map.n_output * n
        return feature_map.exact_bytes(x, y) + made + n * (_BYTES_PER_ESTIMATE * self.repeats + _BYTES_PER_PAIR)

    def run(
        self, feature_map: FeatureMap, rows: GivenRows, progress: Progress | None = None, threads: int = 1
    ) -> Finding[Variances]:
        """Variance of the estimate of k(x_i, y_i) for each i.

        Simulated with maps of the same spec and other seeds, of which a map that has nothing random makes no two: its
        variance is 0. Closed forms speak of independent frequencies or hashes; the map's own is among them for samplers
        monte_carlo, gcws and moment_matching over monte_carlo.

        Raises:
            InvalidInput: x and y are not as many rows, gamma has no meaning, or rows have no kernel.
        """
        x, y = self._pairs(feature_map, rows)
        if x.shape[0] != y.shape[0]:
            raise InvalidInput(f"x has {x.shape[0]} rows and y {y.shape[0]}; pairs need as many", "/y")
        sampler = feature_map.spec.sampler
        if sampler.learns:
            too_long = f"which takes too long to do for every one of {self.repeats} maps"
            raise InvalidInput(f"sampler {sampler.kind} learns its set, {too_long}")
        if self.gamma is not None and (refusal := feature_map.gamma_refusal()) is not None:
            raise InvalidInput(refusal, "/gamma")
        feature_map.check_rows(x, "/x")
        feature_map.check_rows(y, "/y")
        exact, (own, closed) = feature_map.exact_pairs(x, y), feature_map.closed_forms(x, y, self.gamma)
        of_pairs = closed_forms_of_pairs(closed, len(exact))
        estimates = _estimates(feature_map, x, y, map_seeds(self.seed, self.repeats), progress or Progress(), threads)
        rbf = None
        if self.gamma is not None:
            rbf = rbf_estimate(kernel_estimate(estimates, feature_map.n_frequencies, 0.0), self.gamma).value
        answer = Variances(
            form=None if feature_map.form is None else feature_map.form.value,
            s=feature_map.n_frequencies,
            repeats=self.repeats,
            own=own,
            pairs=[
                PairVariance(
                    exact=float(exact[i]),
                    closed_form=float(closed[own][i]) if own is not None and own in closed else None,
                    closed_forms=of_pairs[i],
                    empirical=_empirical(estimates[:, i]),
                    rbf_empirical=None if rbf is None else _empirical(rbf[:, i]),
                )
                for i in range(len(exact))
            ],
        )
        return Finding(answer)

    def _pairs(self, feature_map: FeatureMap, rows: GivenRows) -> tuple[Rows, Rows]:
        if self.correlations is None:
            return rows["x"], rows["y"]
        return correlated_pairs(feature_map, list(self.correlations))


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


def _estimates(feature_map: FeatureMap, x: Rows, y: Rows, seeds: list[int], progress: Progress, threads: int) -> Array:
    """Estimates of the pairs by maps of these seeds, (seeds, n)."""
    found: Array = np.empty((len(seeds), x.shape[0]), np.result_type(feature_map.gram_dtype, np.float64))
    known = unpacked(progress.restored()).get("found", found[:0])
    found[: len(known)] = known
    for done in range(len(known), len(seeds)):
        progress.report(done, len(seeds))
        keep = partial(packed, found=found[:done])
        spec = feature_map.spec.model_copy(update={"seed": seeds[done]})
        other = made(spec, Building(threads, Pausing(progress, keep)))
        found[done] = other.estimated_pairs(x, y, partial(progress.checkpoint, keep))
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
