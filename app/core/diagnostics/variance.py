"""The variance of a map's kernel estimate for pairs of rows: in closed form, and simulated over seeds."""

from functools import partial
from typing import Annotated, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.core.arrays import Array, Matrix, Rows
from app.core.building import Building
from app.core.diagnostics.base import Diagnostic, Finding, GivenRows, Seed, Takes
from app.core.diagnostics.random_pairs import map_seeds
from app.core.diagnostics.variance_answer import ClosedForms, Empirical, PairVariance, Variances
from app.core.diagnostics.variance_drawing import drawing
from app.core.errors import InvalidInput
from app.core.hashing.estimates import kernel_estimate, rbf_estimate
from app.core.kernels.base import Positive
from app.core.maps import FeatureMap, Gives, family_of, made
from app.core.papers import GMM, MM
from app.core.progress import Progress, begin_anew, keeping_nothing, packed, unpacked

# Samples of two rows, and where they agree; estimates of one pair by one map; the closed forms and figures of a pair.
_BYTES_PER_HASH, _BYTES_PER_ESTIMATE, _BYTES_PER_PAIR = 40, 80, 2000


class Variance(Diagnostic):
    """Closed-form variances of the estimate for pairs of rows, beside an empirical one over maps of other seeds."""

    kind = "variance"
    takes = Takes.optional_pairs
    answer = Variances
    draws = True
    source = f"{MM}, corollary 1; {GMM}, theorems 2 to 4"
    choose_when = "To see which estimator's noise is least at the similarities that matter to you."

    correlations: Annotated[
        tuple[Annotated[float, Field(ge=-1, le=1)], ...] | None,
        Field(min_length=1, max_length=1000, fail_fast=True, description="Cosines ρ of pairs, instead of x and y."),
    ] = None
    gamma: Annotated[Positive | None, Field(description="Of the RBF kernel estimated from hashes too.")] = None
    repeats: Annotated[int, Field(ge=2, le=10_000, description="Maps of other seeds to simulate with.")] = 200
    seed: Seed = 0

    def check(self, feature_map: FeatureMap, rows: GivenRows) -> None:
        """Refuse a request without pairs, with sides of different lengths, or with both rows and correlations."""
        if (self.correlations is None) != (len(rows) == 2) or len(rows) == 1:
            raise InvalidInput("x and y, or correlations instead of both, are wanted", "/x")
        if rows and (n := rows["x"].shape[0]) != (of_y := rows["y"].shape[0]):
            raise InvalidInput(f"x has {n} rows and y {of_y}; pairs need as many", "/y")

    def made_rows_bytes(self, feature_map: FeatureMap) -> int:
        """Memory of rows that are made of correlations around a centre, which makes them dense; 0 for others."""
        if self.correlations is None or not feature_map.kernel.is_centered:
            return 0
        return 16 * len(self.correlations) * feature_map.spec.input_dim

    def memory_bytes(self, feature_map: FeatureMap, rows: GivenRows) -> int:
        """Memory of rows in float64, a map, what it makes of them, all estimates, and the answer."""
        x, y = self.pairs(feature_map, rows)
        n = int(x.shape[0])
        made = family_of(feature_map.spec.sampler).drawing_bytes(feature_map.spec)
        if Gives.features in feature_map.gives:
            # Features of x, of y, these conjugate, and phases.
            made += 4 * feature_map.gram_dtype.itemsize * feature_map.n_output * n + 2 * feature_map.bytes
        else:
            made += _BYTES_PER_HASH * feature_map.n_output * n
        return feature_map.kernel.exact_bytes(x, y) + made + n * (_BYTES_PER_ESTIMATE * self.repeats + _BYTES_PER_PAIR)

    def run(
        self, feature_map: FeatureMap, rows: GivenRows, progress: Progress | None = None, threads: int = 1
    ) -> Finding[Variances]:
        """Variance of the estimate of k(x_i, y_i) for each i, simulated with maps of the same spec and other seeds.

        It is 0 of a map that has nothing random. Closed forms speak of independent frequencies or hashes; the map's own
        is among them for samplers monte_carlo, gcws, dart_minhash and moment_matching over monte_carlo.
        """
        x, y = self.pairs(feature_map, rows)
        sampler = feature_map.spec.sampler
        if sampler.learns:
            too_long = f"which takes too long to do for every one of {self.repeats} maps"
            raise InvalidInput(
                f"sampler {sampler.kind} learns its set, {too_long}; gram measures the error of this one"
            )
        if self.gamma is not None and (refusal := feature_map.gamma_refusal()) is not None:
            raise InvalidInput(refusal, "/gamma")
        feature_map.check_rows(x, "/x")
        feature_map.check_rows(y, "/y")
        exact, (own, closed) = feature_map.exact_pairs(x, y), feature_map.closed_forms(x, y, self.gamma)
        estimates = _estimates(feature_map, x, y, map_seeds(self.seed, self.repeats), progress or Progress(), threads)
        rbf = rbf_exact = None
        if self.gamma is not None:
            rbf_exact = feature_map.rbf_pairs(x, y, self.gamma)
            rbf = rbf_estimate(kernel_estimate(estimates, feature_map.n_frequencies, 0.0), self.gamma).value
        pairs = []
        for i in range(len(exact)):
            known = {name: float(variances[i]) for name, variances in closed.items()}
            pairs.append(
                PairVariance(
                    exact=float(exact[i]),
                    closed_form=None if own is None else known.get(own),
                    closed_forms=cast(ClosedForms, dict.fromkeys(ClosedForms.__annotations__) | known),
                    empirical=_empirical(estimates[:, i]),
                    rbf_empirical=None if rbf is None else _empirical(rbf[:, i]),
                    rbf_exact=None if rbf_exact is None else float(rbf_exact[i]),
                )
            )
        answer = Variances(
            form=None if feature_map.form is None else feature_map.form.value,
            s=feature_map.n_frequencies,
            repeats=self.repeats,
            own=own,
            pairs=pairs,
        )
        return Finding(answer, drawing(answer))

    def pairs(self, feature_map: FeatureMap, rows: GivenRows) -> tuple[Rows, Rows]:
        """The rows x and y that came, or such as have the correlations; InvalidInput where none have."""
        if self.correlations is None:
            return rows["x"], rows["y"]
        spec = feature_map.spec
        return spec.kernel.correlated_pairs(np.array(self.correlations), spec.input_dim)


def _estimates(feature_map: FeatureMap, x: Rows, y: Rows, seeds: list[int], progress: Progress, threads: int) -> Array:
    """Estimates of the pairs by maps of these seeds, (seeds, n)."""
    found: Array = np.empty((len(seeds), x.shape[0]), np.result_type(feature_map.gram_dtype, np.float64))
    if not feature_map.is_random:
        found[:] = feature_map.estimated_pairs(x, y, partial(progress.checkpoint, begin_anew))
        return found
    known = unpacked(progress.restored()).get("found", found[:0])
    found[: len(known)] = known
    for done in range(len(known), len(seeds)):
        progress.report(done, len(seeds))
        inside = keeping_nothing(progress, partial(packed, found=found[:done]))
        spec = feature_map.spec.model_copy(update={"seed": seeds[done]})
        other = made(spec, Building(threads, inside))
        found[done] = other.estimated_pairs(x, y, partial(inside.checkpoint, begin_anew))
        progress.checkpoint(partial(packed, found=found[: done + 1]))
    return found


def _empirical(estimates: NDArray[np.complex128] | Matrix) -> Empirical:
    """Mean and variance of the estimates of one pair, one estimate a map."""
    mean = estimates.mean()
    squares = np.square(np.abs(estimates - mean))
    n = len(estimates)
    return Empirical(
        mean=float(mean.real),
        variance=float(squares.sum() / (n - 1)),
        standard_error=float(squares.std() / np.sqrt(n)),
    )
