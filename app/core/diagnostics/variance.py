"""Variance of a map's kernel estimate for pairs of rows: in closed form, and simulated over seeds."""

from functools import partial
from typing import Annotated, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, with_config
from typing_extensions import TypedDict

from app.core.arrays import Array, Matrix, Rows
from app.core.building import Building
from app.core.diagnostics.base import Diagnostic, Finding, GivenRows, Seed, Takes, map_seeds
from app.core.drawing import Curve, Drawing, Panel
from app.core.errors import InvalidInput
from app.core.hashing.estimates import kernel_estimate, rbf_estimate
from app.core.kernels.base import Positive
from app.core.maps import FeatureMap, Gives, family_of, make_map
from app.core.model import GMM, MM
from app.core.progress import Progress, begin_anew, keeping_nothing, pack_arrays, unpack_arrays
from app.core.samplers.base import AnySampler


@with_config(use_attribute_docstrings=True)
class ClosedForms(TypedDict):
    """Variances of one pair's estimate; null if none is known, or if the estimate is not defined for the map."""

    # φ is the kernel divided by its value at 0, as a function of the difference δ of two rows: the characteristic
    # function E cos w·δ. s is the number of frequencies or hashes. In the form complex, a variance is E|k̂ − k|², with
    # the imaginary part included.

    monte_carlo: float | None
    """This map with independent frequencies. Per frequency 1 − φ(δ)² in the form complex, ½ + ½φ(2δ) − φ(δ)² in
    cos_sin, ½ more in phase; if normalised, the same as `nrff`.
    """
    cv1: float | None
    """Control variates of the first moment, for normally distributed frequencies (moment-matching paper, corollary 1):
    with t = δᵀΣδ, smaller by t e^(−t)/s, in the form complex only.
    """
    cv2: float | None
    """Control variates of two moments: smaller than cv1 by ½t² e^(−t)/s."""
    moment_matching: float | None
    """Equal to cv2, to first order in 1/s (moment-matching paper, corollary 2)."""
    rff: float | None
    """The form phase (GMM paper, theorem 2)."""
    nrff: float | None
    """The form phase, normalised (GMM paper, theorem 3, for any spectral kernel), to first order: (1 + ½φ(2δ) − (7 −
    φ(2δ))φ(δ)²/4)/s, which is the theorem if φ(2δ) = φ(δ)⁴.
    """
    gcws: float | None
    """g(1 − g)/s with g the min-max kernel (GMM paper, (12)); also for dart_minhash."""
    rbf_from_gcws: float | None
    """64γ² e^(−4γz²) g(1 − g)³/(1 + g)⁶/s with z = (1 − g)/(1 + g), to first order (GMM paper, theorem 4, (26))."""


@with_config(use_attribute_docstrings=True)
class Empirical(TypedDict):
    """Mean and variance of the estimates for one pair by maps of other seeds."""

    mean: float
    """Mean of the estimates."""
    variance: float
    """E|k̂ − E k̂|²."""
    standard_error: float
    """Standard error of the variance."""


@with_config(use_attribute_docstrings=True)
class PairVariance(TypedDict):
    """Kernel of one pair of rows, and variances of its estimate."""

    exact: float
    """The exact kernel."""
    closed_form: float | None
    """Value in `closed_forms` that applies to this map; null if none is known."""
    closed_forms: ClosedForms
    """Variances by closed forms."""
    empirical: Empirical
    """Variances measured over seeds."""
    rbf_empirical: Empirical | None
    """Mean and variance of the RBF kernel's estimates; null without gamma."""
    rbf_exact: float | None
    """The exact RBF kernel; null without gamma. The mean of the estimates differs from it by a bias that no number of
    hashes reduces and that no variance shows.
    """


@with_config(use_attribute_docstrings=True)
class Variances(TypedDict):
    """Variances of the estimate of k(x_i, y_i) for each pair i."""

    form: str | None
    """Form whose variance is given; null for hashes."""
    s: int
    """Number of frequencies or hashes."""
    repeats: int
    """Number of maps of other seeds in the simulation."""
    own: str | None
    """Name of the map's own closed form; null if none is known."""
    pairs: list[PairVariance]
    """The pairs of rows, with their variances."""


# Samples of two rows, and where they agree; estimate of one pair by one map; closed forms and figures of a pair.
_BYTES_PER_HASH, _BYTES_PER_ESTIMATE, _BYTES_PER_PAIR = 40, 80, 2000


class Variance(Diagnostic):
    """Closed-form variances of the estimate for pairs of rows, and an empirical variance over maps of other seeds.

    Choose when:
        Use it to find the estimator with the least noise at the similarities that matter to you.
    """

    kind = "variance"
    takes = Takes.optional_pairs
    answer = Variances
    draws = True
    source = f"{MM}, corollary 1; {GMM}, theorems 2 to 4"

    correlations: Annotated[
        tuple[Annotated[float, Field(ge=-1, le=1)], ...] | None, Field(min_length=1, max_length=1000, fail_fast=True)
    ] = None
    """Cosines ρ of pairs, instead of x and y."""
    gamma: Positive | None = None
    """γ of the RBF kernel to estimate from hashes as well."""
    repeats: Annotated[int, Field(ge=2, le=10_000)] = 200
    """Number of maps of other seeds in the simulation."""
    seed: Seed = 0

    @classmethod
    def is_for(cls, sampler: type[AnySampler], gives: frozenset[Gives]) -> bool:
        """Return whether maps of other seeds can be built at once."""
        return not sampler.always_learns

    def check(self, feature_map: FeatureMap, rows: GivenRows) -> None:
        """Refuse a request without pairs, with x and y of different lengths, or with both rows and correlations."""
        if (self.correlations is None) != (len(rows) == 2) or len(rows) == 1:
            raise InvalidInput("expected x and y, or correlations instead of both", "/x")
        if rows and (n := rows["x"].shape[0]) != (of_y := rows["y"].shape[0]):
            raise InvalidInput(f"x has {n} rows and y {of_y}; pairs need as many", "/y")

    def made_rows_bytes(self, feature_map: FeatureMap) -> int:
        """Return the memory of rows made from correlations around a centre, which makes them dense; else 0."""
        if self.correlations is None or not feature_map.kernel.is_centered:
            return 0
        return 16 * len(self.correlations) * feature_map.spec.input_dim

    def memory_bytes(self, feature_map: FeatureMap, rows: GivenRows) -> int:
        """Return the memory of rows in float64, a map, its features or samples, all estimates, and the answer."""
        x, y = self.pairs(feature_map, rows)
        n = int(x.shape[0])
        made = family_of(feature_map.spec.sampler).drawing_bytes(feature_map.spec)
        if Gives.features in feature_map.gives:
            # Features of x, of y, conjugates of the features of y, and phases.
            made += 4 * feature_map.gram_dtype.itemsize * feature_map.n_output * n + 2 * feature_map.bytes
        else:
            made += _BYTES_PER_HASH * feature_map.n_output * n
        return feature_map.kernel.exact_bytes(x, y) + made + n * (_BYTES_PER_ESTIMATE * self.repeats + _BYTES_PER_PAIR)

    def run(self, feature_map: FeatureMap, rows: GivenRows, progress: Progress, threads: int) -> Finding[Variances]:
        """Measure the variance of the estimate of k(x_i, y_i) for each i, with maps of the same spec and other seeds.

        It is 0 for a map without randomness. Closed forms are for independent frequencies or hashes; the map's own is
        among them for samplers monte_carlo, gcws, dart_minhash and moment_matching over monte_carlo.
        """
        x, y = self.pairs(feature_map, rows)
        sampler = feature_map.spec.sampler
        if sampler.learns:
            too_long = f"which takes too long to do for every one of {self.repeats} maps"
            detail = f"sampler {sampler.kind} learns its set, {too_long}; gram measures the error of this one"
            raise InvalidInput(detail)
        if self.gamma is not None and (refusal := feature_map.gamma_refusal()) is not None:
            raise InvalidInput(refusal, "/gamma")
        feature_map.check_rows(x, "/x")
        feature_map.check_rows(y, "/y")
        exact, (own, closed) = feature_map.exact_pairs(x, y), feature_map.closed_forms(x, y, self.gamma)
        estimates = _estimates(feature_map, x, y, map_seeds(self.seed, self.repeats), progress, threads)
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
        """Return rows x and y of the request, or rows that have the correlations; InvalidInput if none have."""
        if self.correlations is None:
            return rows["x"], rows["y"]
        spec = feature_map.spec
        return spec.kernel.correlated_pairs(np.array(self.correlations), spec.input_dim)


def _estimates(feature_map: FeatureMap, x: Rows, y: Rows, seeds: list[int], progress: Progress, threads: int) -> Array:
    """Return estimates of the pairs by maps of these seeds, (seeds, n)."""
    found: Array = np.empty((len(seeds), x.shape[0]), np.result_type(feature_map.gram_dtype, np.float64))
    if not feature_map.is_random:
        found[:] = feature_map.estimated_pairs(x, y, partial(progress.checkpoint, begin_anew))
        return found
    known = unpack_arrays(progress.restore()).get("found", found[:0])
    found[: len(known)] = known
    for done in range(len(known), len(seeds)):
        progress.report(done, len(seeds))
        inside = keeping_nothing(progress, partial(pack_arrays, found=found[:done]))
        other = make_map(feature_map.spec.model_copy(update={"seed": seeds[done]}), Building(threads, inside))
        found[done] = other.estimated_pairs(x, y, partial(inside.checkpoint, begin_anew))
        progress.checkpoint(partial(pack_arrays, found=found[: done + 1]))
    return found


def _empirical(estimates: NDArray[np.complex128] | Matrix) -> Empirical:
    """Return mean and variance of the estimates of one pair, one estimate per map."""
    mean = estimates.mean()
    squares = np.square(np.abs(estimates - mean))
    n = len(estimates)
    variance = squares.sum() / (n - 1)
    # The variance of a sample variance is (μ₄ − σ⁴ (n − 3)/(n − 1))/n.
    of_variance = max(np.square(squares).mean() - variance**2 * (n - 3) / (n - 1), 0) / n
    return Empirical(mean=float(mean.real), variance=float(variance), standard_error=float(np.sqrt(of_variance)))


MOST_PAIRS = 100
"""Most pairs in a figure, spread evenly by rank of the kernel: each takes up to 1.2 kB of SVG."""


def drawing(answer: Variances) -> Drawing:
    """Plot the variance against the kernel: simulated, with its standard error, and every closed form that is known."""
    pairs = sorted(answer["pairs"], key=lambda pair: pair["exact"])
    if len(pairs) > MOST_PAIRS:
        pairs = [pairs[i] for i in np.linspace(0, len(pairs) - 1, MOST_PAIRS).astype(int)]
    names = [*ClosedForms.__annotations__]
    curves = _simulate(pairs, answer["repeats"], names, answer["own"])
    kernel = [pair["exact"] for pair in pairs]
    for number, name in enumerate(names):
        forms = [cast(dict[str, float | None], pair["closed_forms"])[name] for pair in pairs]
        known = [value for value in forms if value is not None]
        if known:
            is_own = name == answer["own"]
            label = f"closed form {name}" + (", this map's" if is_own else "")
            curves.append(Curve(kernel, known, label, number, "line" if is_own else "dashed"))
    title = f"{answer['repeats']:,} maps of other seeds" + (f", form {answer['form']}" if answer["form"] else "")
    panel = Panel(curves, x_label="exact kernel", y_label="variance of its estimate", title=title, legend_beside=True)
    return Drawing([[panel]])


def _simulate(pairs: list[PairVariance], repeats: int, names: list[str], own: str | None) -> list[Curve]:
    """Return curves of the simulated variances: of the kernel's estimate, and of the RBF kernel's estimate from it.

    The curves have the colours of their closed forms.
    """
    members: dict[Literal["empirical", "rbf_empirical"], tuple[str, int | None]] = {
        "empirical": (f"{repeats:,} maps, ± standard error", None if own is None else names.index(own)),
        "rbf_empirical": (f"RBF kernel of {repeats:,} maps, ± standard error", names.index("rbf_from_gcws")),
    }
    curves = []
    for member, (label, colour) in members.items():
        found: list[tuple[float, Any]] = [(pair["exact"], one) for pair in pairs if (one := pair[member]) is not None]
        if found:
            x, y = [exact for exact, _ in found], [one["variance"] for _, one in found]
            curves.append(Curve(x, y, label, colour, "markers", [one["standard_error"] for _, one in found]))
    return curves
