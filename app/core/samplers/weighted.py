"""Weights that minimise the mean squared error of given frequencies."""

from functools import partial
from typing import Literal, Self

import numpy as np
import scipy
from numpy.linalg import eigh

from app.core.arrays import Matrix
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, SpectralKernel
from app.core.model import QMC
from app.core.progress import begin_anew, pack_arrays, unpack_arrays
from app.core.samplers.base import FrequencySet, LearnedSampler, Rng, SizeAdvice, sum_warnings
from app.core.samplers.halton import Halton
from app.core.samplers.learning import PRODUCT_LAW, Differences, LearningFields, add_report
from app.core.samplers.points import Points, check_base

# Eigenvalues below this fraction of the largest one are rounding errors.
_CUT_OFF = 1e-13
_MOST_FREQUENCIES = 4096
_ITERATIONS_PER_FREQUENCY = 30
_BYTES_PER_PAIR = 40
# From this many weights on, eigenvectors and solution may take more than a second.
_LONG = 700
# Progress after the error of the start, the matrix and the weights, in steps of the whole work at about s = 2000.
_START, _MATRIX, _STEPS = 1, 3, 100


class Weighted(LearningFields, LearnedSampler):
    """The base's frequencies with the non-negative weights that minimise the mean squared error.

    Frequencies of weight 0, half of the s or more, are left out: `n_frequencies` is the number that is left.

    Choose when:
        Use it with differences data for rows similar to a dataset; it takes a second or two. On held-out rows its Gram
        error was below that of halton on all 13 datasets tried: .66 of it at s = 64 and .43 at s = 256. Over a box, use
        it only for the fewest output columns on rows close to each other: the normalised box discrepancy on cpu in 21
        dimensions, a quarter of the box, s = 300 (143 are kept), is 8.9e-6 for halton and 1.3e-11 for weighted. Over a
        box, its Gram error was above that of halton in two cases of three. Weights may shrink the kernel: see the
        warnings.
    """

    source = f"{QMC}, section 5.3, with (2π)^−d for the π^−d of its forms"
    limits = (f"on a box {PRODUCT_LAW}", f"s of at most {_MOST_FREQUENCIES}", "those of the base")

    kind: Literal["weighted"]
    base: Points = Halton(kind="halton")
    """Sampler that draws the frequencies."""
    normalize_weights: bool = False
    """Whether to scale the weights to a sum of 1, so that k(x, x) is 1."""

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """Return the sampler on differences of rows, if that is quick: on a box, most are worse than their base."""
        if dataset is None or most > _LONG:
            return ()
        return (cls(kind="weighted", dataset=dataset, differences=Differences.data),)

    def weighs_alike(self) -> bool:
        """Return False: the weights are learned."""
        return False

    def drawing_bytes(self, s: int, input_dim: int) -> int:
        """Return the memory of the base, of the matrix of all pairs with its eigenvectors and root, and of rows."""
        return self.base.drawing_bytes(s, input_dim) + _BYTES_PER_PAIR * s**2 + self.rows_bytes(s, input_dim)

    def check(self, kernel: SpectralKernel, s: int, input_dim: int) -> None:
        """Refuse a kernel or box that cannot be learned on, a base that learns, and too many frequencies."""
        self.check_differences(kernel, self.kind, input_dim)
        check_base(self.base, kernel, s, input_dim)
        if s > _MOST_FREQUENCIES:
            reason = f"weighted solves for at most {_MOST_FREQUENCIES} weights"
            raise InvalidInput(SizeAdvice(reason, s, _MOST_FREQUENCIES), "/s")

    def learned_set(self, kernel: SpectralKernel, s: int, input_dim: int, rng: Rng, building: Building) -> FrequencySet:
        """Return the frequencies kept, with their weights."""
        measure, _, rows = self.learning(kernel, input_dim, building)
        base, progress = self.base.frequency_set(kernel, s, input_dim, rng), building.progress
        state = unpack_arrays(progress.restore())
        if not state:
            pause = partial(progress.checkpoint, begin_anew)
            state["start"] = np.array(measure.evaluate(base.frequencies, pause=pause))
            progress.report(_START, _STEPS, state["start"].item())
            state["gram"] = measure.gram(base.frequencies, pause)
            state["means"] = measure.means(base.frequencies, pause)
        start = state["start"].item()
        progress.report(_MATRIX, _STEPS, start)
        if "weights" not in state:
            if s > _LONG:
                progress.before_long_call(partial(pack_arrays, **state))
            state = {"start": state["start"], "weights": least_weights(state["gram"], state["means"])}
        pause, weights = partial(progress.checkpoint, partial(pack_arrays, **state)), state["weights"].copy()
        total = float(weights.sum())
        if total == 0:
            raise InvalidInput(
                "no weight is above 0: the base misses the kernel on this box; take a smaller box_scale",
                "/sampler/box_scale",
            )
        warnings = base.warnings
        if self.normalize_weights:
            weights /= total
        else:
            smaller = "" if self.on_rows else "a smaller box_scale, "
            warnings += sum_warnings(total, f": take {smaller}a larger s, or normalize_weights")
        kept = weights > 0
        found = FrequencySet(base.frequencies[kept], weights[kept], warnings)
        end = measure.evaluate(found.frequencies, found.weights, pause)
        progress.report(_STEPS, _STEPS, max(0.0, end))
        return add_report(found, base, f"base {self.base.kind}", (start, end), kernel, rows, building.use, pause)


def least_weights(gram: Matrix, means: Matrix) -> Matrix:
    """Find the ξ ≥ 0, (s,), that minimises ξᵀHξ − 2vᵀξ, with H the Gram matrix, (s, s), and v the means, (s,).

    H is singular to rounding, and v lies in the span of its other eigenvectors: with H = UΛUᵀ and the root R = Λ^½Uᵀ of
    the eigenvalues above the cut-off, the objective is ‖Rξ − Λ^−½Uᵀv‖² less a constant.

    Raises:
        InvalidInput: H or v is not finite.
    """
    if not (np.isfinite(gram).all() and np.isfinite(means).all()):
        raise InvalidInput("the frequencies leave the range of float64: take a larger length scale", "/kernel")
    eigenvalues, vectors = eigh(gram)
    kept = eigenvalues > _CUT_OFF * eigenvalues[-1]
    roots, vectors = np.sqrt(eigenvalues[kept]), vectors[:, kept]
    most = _ITERATIONS_PER_FREQUENCY * len(means)
    return np.asarray(scipy.optimize.nnls((vectors * roots).T, (means @ vectors) / roots, maxiter=most)[0], np.float64)
