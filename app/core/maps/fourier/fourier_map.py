"""The family of Fourier maps."""

from collections.abc import Callable

import numpy as np

from app.core.arrays import Array, Floats, Matrix, Rows, dense, largest, row_blocks
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import SignedLaw
from app.core.hashing.encodings import CodeOptions, Codes, Encoder
from app.core.hashing.signed_codes import SIGNED, agreeing, signed_encoder
from app.core.kernels.base import ShiftInvariantKernel
from app.core.maps.fourier.drawing import unequal
from app.core.maps.fourier.features import Features
from app.core.maps.fourier.forms import FORMS
from app.core.maps.fourier.fourier_specs import FourierSpecs, projection_of
from app.core.maps.fourier.inner_products import gram
from app.core.maps.fourier.projection import Projection
from app.core.maps.fourier.signed_codes import SignedCodes
from app.core.maps.fourier.spectral import spectral
from app.core.maps.fourier.variances import closed_forms
from app.core.maps.terms import (
    Arrays,
    ArraysOnDemand,
    BaseSpec,
    ClosedForms,
    Form,
    FrozenArray,
    Gives,
    Spectrum,
)
from app.core.progress import Pause, no_pause
from app.core.samplers.monte_carlo import MonteCarlo
from app.core.threads import for_each

# Coordinates of differences whose exact kernels one thread computes at a time, a tenth of a second or less.
_COORDINATES_PER_PART = 1 << 17
# The most bits that are held of either row while pairs are compared.
_BITS_PER_BLOCK = 1 << 23


class FourierMap(FourierSpecs):
    """Features z with z(x)·z(y) = Σ ξ_l cos(w_l·(x − y)) ≈ k(x − y).

    A projection makes phases of the rows, and the form of the spec makes columns of the phases.

    Arrays, in the map's dtype: those of the projection, `weights` (n_frequencies,) and, for the form `phase`, `offsets`
    (n_frequencies,) in [0, 2π); where weights are negative, `signature` (n_frequencies,) of ±1, and then it is
    Σ signature_l z_l(x) z_l(y) that approximates k.

    Where all weights are one, each frequency gives a bit of a signed code, too, with parameters that are not frozen.
    """

    kernel: ShiftInvariantKernel

    def __init__(self, spec: BaseSpec, arrays: Arrays, threads: int = 1) -> None:
        self.threads = threads
        self.spec = spec
        self.kernel, _ = spectral(spec)
        self.form = spec.form
        self._projection = projection_of(spec)(spec, arrays)
        s = self.n_frequencies = self._projection.n_frequencies
        is_dense = self._projection.is_dense
        self._weights = self._projection.weights(spec, arrays)
        self.signature = arrays.get("signature")
        self._features = Features(spec, self._projection, self._weights, arrays, threads)
        self._codes = SignedCodes(spec, self.kernel, self._projection, threads)
        self.gram_dtype, self.largest_feature = self._features.dtype, self._features.largest
        self.n_output = s * self._features.per_frequency
        of_set = _of_set(self._projection, self._weights)
        self.arrays = ArraysOnDemand({name: arrays[name] for name in arrays.keys() - of_set.keys()}, of_set)
        if not is_dense:
            of_each = FrozenArray((s,), spec.numpy_dtype)
            self.computed = {"frequencies": FrozenArray((s, spec.input_dim), spec.numpy_dtype), "weights": of_each}
        self.bytes = self._projection.bytes + self._features.nbytes + self._codes.nbytes

    def transform(self, rows: Rows, pause: Pause = no_pause) -> Array:
        """Features; InvalidInput for rows without a kernel, or so large that a phase could leave the dtype's range."""
        rows = self._in_range(rows, "/vectors")
        return self._features.of(rows, slice(0, self.n_frequencies), pause, self._features.norms_differ)

    def codes(self, rows: Rows, encoder: Encoder = SIGNED, pointer: str = "/vectors", pause: Pause = no_pause) -> Codes:
        """The bits of the rows, as the encoder writes them; refused as by `transform`, and where weights differ."""
        self.check_gives(Gives.codes)
        return self._codes.of(self._in_range(rows, pointer), encoder, pause)

    def encoder_of(self, options: CodeOptions) -> Encoder:
        """The encoder of these options; packed where they name no encoding."""
        return signed_encoder(options, self.n_frequencies)

    def code_law(self, called: str = "this map") -> SignedLaw:
        """That of the kernel; refused where weights differ, or no law tells the kernel."""
        self.check_gives(Gives.codes, called)
        return self._codes.law(called)

    def similarity(self, x: Rows, y: Rows, by: Encoder, gamma: float | None) -> dict[str, Array]:
        """The share of codes that agree, and the kernel; where the law tells it, its estimate, too."""
        counts, exact = np.empty(x.shape[0], np.int64), np.empty(x.shape[0])
        for block in row_blocks(len(exact), max(1, _BITS_PER_BLOCK // self.n_frequencies)):
            of_x, of_y = self.codes(x[block], by, "/x"), self.codes(y[block], by, "/y")
            counts[block] = agreeing(of_x, of_y, self.n_frequencies, by)
            exact[block] = self.exact_pairs(x[block], y[block])
        return self._codes.told(counts, by, exact)

    def similarity_of_codes(self, x: Codes, y: Codes, by: Encoder, gamma: float | None) -> dict[str, Array]:
        """The share of codes that agree and, where the law tells it, the estimate of the kernel."""
        return self._codes.told(agreeing(x, y, self.n_frequencies, by), by)

    def similarity_warnings(self) -> tuple[str, ...]:
        """Why there is no law that tells the kernel, if there is none."""
        return self._codes.warnings()

    def check_rows(self, rows: Rows, pointer: str) -> None:
        """Raise InvalidInput for rows without a kernel, or so large that a phase could leave the dtype's range."""
        self._in_range(rows, pointer)

    def operations(self, rows: Rows) -> int:
        """Multiplications of the projection."""
        return self._projection.operations(rows)

    def gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Array:
        """Inner products of the features, Σ_l z_l(x) z̄_l(y) times the signature_l if there are any."""
        x, y = self._in_range(x, "/x"), self._in_range(y, "/y")
        return gram(self._features, x, y, self.signature, self.threads, pause)

    def exact_gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Matrix:
        """The kernel itself, (n, m); with `normalize` what those features approximate, k/k(0)."""
        gram = super().exact_gram(x, y, pause)
        gram /= self._scale
        return gram

    def exact_pairs(self, x: Rows, y: Rows) -> Matrix:
        """The kernel itself, pair by pair; with `normalize`, k/k(0)."""
        return super().exact_pairs(x, y) / self._scale

    def lag_errors(self, lags: Matrix, pause: Pause = no_pause) -> Matrix:
        """Errors of the inner products of rows δ with the origin, as `gram` makes them; of form phase, as of cos_sin.

        Rows are δ as they are, whatever the kernel makes of rows before it compares them.
        """
        self._check_phases(lags)
        rows, origin = lags.astype(self.spec.numpy_dtype), np.zeros((1, lags.shape[1]), self.spec.numpy_dtype)
        features = self._features
        if FORMS[self.spec.form].has_offsets:  # whose noise is no function of δ
            without = self.spec.model_copy(update={"form": Form.cos_sin})
            features = Features(without, self._projection, self._weights, {}, self.threads)
        estimate = gram(features, rows, origin, self.signature, self.threads, pause)[:, 0]
        exact = np.empty(len(lags))

        def fill(part: slice) -> None:
            exact[part] = self.kernel.gram(lags[part], origin.astype(np.float64))[:, 0] / self._scale

        for_each(fill, row_blocks(len(lags), _COORDINATES_PER_PART // lags.shape[1]), self.threads, pause)
        return np.abs(estimate - exact)

    def baseline(self, seed: int) -> BaseSpec:
        """The spec of a map of as many Monte Carlo frequencies, all else the same."""
        changes = {"sampler": MonteCarlo(kind="monte_carlo"), "s": self.n_frequencies, "seed": seed}
        return self.spec.model_copy(update=changes)

    def closed_forms(self, x: Rows, y: Rows, gamma: float | None = None) -> ClosedForms:
        """Variances of independent frequencies, of control variates and of moment matching."""
        lags = dense(self.compared_exactly(x, "/x")) - dense(self.compared_exactly(y, "/y"))
        return closed_forms(self.spec, self.baseline(0), lags)

    def refusal(self, wanted: Gives, called: str = "this map") -> InvalidInput:
        """The refusal of codes, of a map whose weights differ, and of samples."""
        kind = self.spec.kernel.kind
        if wanted is Gives.codes:
            return InvalidInput(f"{called} has {unequal(self.spec)}")
        return InvalidInput(f"{called} has kernel {kind}; samples (i*, t*) come from maps with kernel gmm")

    def spectrum(self) -> Spectrum:
        """The frozen frequencies and weights, with the kernel."""
        frequencies, weights = (array.astype(np.float64) for array in (self._projection.frequencies, self._weights))
        if self.spec.normalize:
            weights /= weights.sum()
        return Spectrum(frequencies, weights, self.kernel, self._scale)

    @property
    def _scale(self) -> float:
        """k(0) where features are normalised, else 1."""
        return self.kernel.at_zero(self.spec.input_dim) if self.spec.normalize else 1.0

    def _in_range(self, rows: Rows, pointer: str) -> Rows:
        """The rows as the map compares them; InvalidInput if a phase could leave the range of the dtype."""
        rows = self.compared(rows, pointer)
        self._check_phases(rows)
        return rows

    def _check_phases(self, rows: Rows) -> None:
        """Raise InvalidInput if a phase of prepared rows could leave the range of the dtype."""
        most = float(np.finfo(self.spec.numpy_dtype).max) / 4
        entry, norm = largest(rows), self._projection.largest_norm
        if entry and norm > most / entry:
            raise InvalidInput(
                f"an entry of size {entry:.3g} makes phases w·x that leave the range of {self.spec.dtype.value}; "
                f"this map takes entries up to {most / norm:.3g}"
            )


def _of_set(projection: Projection, weights: Floats) -> dict[str, Callable[[], Array]]:
    """Functions that give the frequencies and the weights, in memory of their own."""
    return {"frequencies": lambda: projection.frequencies, "weights": lambda: np.array(weights)}
