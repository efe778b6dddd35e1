"""Maps of shift-invariant kernels: Fourier features."""

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from app.core.arrays import Array, Floats, Rows, dense, largest, row_blocks
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.kernels.base import Matrix, ShiftInvariantKernel
from app.core.maps.base import Arrays, Built, ClosedForms, FeatureMap, Frozen, Gives, Spectrum
from app.core.maps.base_spec import BaseSpec, Dtype
from app.core.maps.fourier import drawing_cost, variances
from app.core.maps.fourier.allocation import allocations, check_allocations, spectral
from app.core.maps.fourier.drawing import check_arrays, frequency_set, uniform_angles
from app.core.maps.fourier.forms import Form
from app.core.samplers.base import AnySampler, FrequencySampler
from app.core.samplers.monte_carlo import MonteCarlo

# Phases computed at a time: small enough to stay in the cache between product and cosine.
_PHASES_PER_BLOCK = 1 << 18
# Features held at a time while a Gram block is summed up; more if the input itself is larger.
_FEATURES_PER_BLOCK = 1 << 22


class FourierMap(FeatureMap):
    """Features z with z(x)·z(y) = Σ ξ_l cos(w_l·(x − y)) ≈ k(x − y).

    Arrays, in the map's dtype: `frequencies` (n_frequencies, d), `weights` (n_frequencies,) and, for the form
    `phase`, `offsets` (n_frequencies,) in [0, 2π); where weights are negative, `signature` (n_frequencies,) of ±1, and
    then it is Σ signature_l z_l(x) z_l(y) that approximates k.
    """

    samplers = FrequencySampler
    gives = frozenset({Gives.features, Gives.frequencies})

    kernel: ShiftInvariantKernel

    def __init__(self, spec: BaseSpec, arrays: Arrays, threads: int = 1) -> None:
        del threads  # those of the linear algebra share the work out
        self.spec = spec
        self.kernel, _ = spectral(spec)
        self.form = spec.form
        # (d, n_frequencies) and contiguous: the layout that dense and sparse products both take without a copy.
        self._directions: Floats = np.ascontiguousarray(arrays["frequencies"].T)
        self._weights: Floats = arrays["weights"]
        self._offsets: Floats | None = arrays.get("offsets")
        self._amplitudes = np.sqrt(np.abs(self._weights) * (2 if spec.form is Form.phase else 1))
        self.signature: NDArray[np.int8] | None = arrays.get("signature")
        self.gram_dtype = np.result_type(spec.numpy_dtype, np.complex64 if spec.form is Form.complex else np.float32)
        self.n_frequencies = len(self._weights)
        self.n_output = _columns(spec, self.n_frequencies)
        self.arrays = arrays | {"frequencies": self._directions.T}
        self.bytes = sum(array.nbytes for array in self.arrays.values())
        with np.errstate(over="ignore"):  # an infinite norm takes no entry but 0
            self._largest_norm = max(
                float(np.abs(arrays["frequencies"][block]).sum(axis=1, dtype=np.float64).max())
                for block in row_blocks(self.n_frequencies, _PHASES_PER_BLOCK // spec.input_dim)
            )

    @classmethod
    def check(cls, spec: BaseSpec) -> None:
        """The kernel has frequencies, and the sampler serves each of its summands."""
        check_allocations(spec)

    @classmethod
    def size_for(cls, sampler: AnySampler, columns: int, input_dim: int) -> int | None:
        """Half as many frequencies as columns, or as many as the sampler makes best use of below that."""
        if not isinstance(sampler, FrequencySampler):
            raise TypeError(f"sampler {sampler.kind} draws no frequencies")
        most = columns // 2
        try:
            dictated = sampler.count(None, input_dim)
        except InvalidInput:
            return sampler.best_size(most)
        if dictated > most:
            raise InvalidInput(
                f"{sampler.kind} may make {dictated} frequencies; {columns} columns have room for {most}"
            )
        return None

    @classmethod
    def frozen(cls, spec: BaseSpec) -> dict[str, Frozen]:
        """Frequencies, weights and signature, and offsets for the form `phase`."""
        s = sum(share.size for share in allocations(spec))
        arrays = {
            "frequencies": Frozen((s, spec.input_dim), spec.numpy_dtype),
            "weights": Frozen((s,), spec.numpy_dtype),
            "signature": Frozen((s,), np.dtype(np.int8)),
        }
        return arrays | ({"offsets": Frozen((s,), spec.numpy_dtype)} if spec.form is Form.phase else {})

    @classmethod
    def drawing_bytes(cls, spec: BaseSpec) -> int:
        """What the sampler takes for the largest summand of the kernel, and the whole set."""
        return drawing_cost.drawing_bytes(spec)

    @classmethod
    def takes_job(cls, spec: BaseSpec) -> bool:
        """Whether the sampler of a summand does."""
        _, sampler = spectral(spec)
        return any(sampler.takes_job(share.size, share.block.dim(spec.input_dim)) for share in allocations(spec))

    @classmethod
    def build(cls, spec: BaseSpec, building: Building | None = None) -> Built:
        """Draw frequencies and offsets, from separate streams of the seed.

        Args:
            spec: of a kernel with frequencies.
            building: where samplers that learn find rows and leave their progress.

        Raises:
            InvalidInput: the sampler finds no such set, its frequencies leave the range of the dtype, or its weights
                have both signs and the form has a meaning for positive ones only.
        """
        for_frequencies, for_offsets = (np.random.Generator(np.random.PCG64(stream)) for stream in _streams(spec.seed))
        # Sums by several threads of the linear algebra round differently: one seed is to give one map on any machine.
        with threadpool_limits(1):
            drawn = frequency_set(spec, for_frequencies, building or Building())
        n_frequencies = len(drawn.weights)
        with np.errstate(over="ignore"):  # what overflows is refused by name below
            arrays: Arrays = {
                "frequencies": drawn.frequencies.astype(spec.numpy_dtype, copy=False),
                "weights": drawn.weights.astype(spec.numpy_dtype, copy=False),
            }
        check_arrays(spec, arrays)
        warnings = drawn.warnings
        if not arrays["frequencies"].any():
            warnings += ("every frequency is 0, so that this map takes the kernel for a constant",)
        if (drawn.weights < 0).any():
            if spec.form is Form.phase or spec.normalize:
                raise InvalidInput(
                    "this rule has negative weights, which have no real root: form phase and normalize have no "
                    "meaning; cos_sin and complex carry a signature",
                    "/normalize" if spec.normalize else "/form",
                )
            arrays["signature"] = np.where(drawn.weights < 0, -1, 1).astype(np.int8)
            if spec.dtype is Dtype.float32:
                warnings += ("weights of both signs multiply the rounding of float32; take dtype float64 for accuracy",)
        if spec.form is Form.phase:
            arrays["offsets"] = uniform_angles(len(drawn.weights), spec.numpy_dtype, for_offsets)
        return Built(arrays, n_frequencies, _columns(spec, n_frequencies), warnings, drawn.report)

    def transform(self, rows: Rows) -> Array:
        """Features of the rows, (n, d) to (n, n_output) in `gram_dtype`.

        Raises:
            InvalidInput: entries so large that a phase w·x could leave the range of the dtype.
        """
        rows = self.kernel.prepared(rows, "/vectors")
        self._check_range(rows)
        features = np.empty((rows.shape[0], self.n_output), self.gram_dtype)
        for block in row_blocks(rows.shape[0], _PHASES_PER_BLOCK // self.n_frequencies):
            self._fill(features[block], rows[block], slice(None))
            if self.spec.normalize:
                # Never 0: no float is an exact zero of the cosine.
                features[block] /= np.linalg.norm(features[block], axis=1, keepdims=True)
        return features

    def gram(self, x: Rows, y: Rows) -> Array:
        """Inner products of the features, rows (n, d) and (m, d) to (n, m); complex for the form `complex`.

        With a signature, Σ_l signature_l z_l(x) z̄_l(y).

        Summed over blocks of frequencies, so that the features of all rows never stand in memory at once.
        """
        x, y = self.kernel.prepared(x, "/x"), self.kernel.prepared(y, "/y")
        self._check_range(x)
        self._check_range(y)
        n, m = x.shape[0], y.shape[0]
        gram = np.zeros((n, m), self.gram_dtype)
        squares_x, squares_y = np.zeros(n), np.zeros(m)
        held = max(_FEATURES_PER_BLOCK, (n + m) * self.spec.input_dim)
        for frequencies in row_blocks(self.n_frequencies, held // (2 * max(1, n + m))):
            features_x, features_y = self._features(x, frequencies), self._features(y, frequencies)
            if self.spec.normalize:
                squares_x += np.square(np.abs(features_x)).sum(axis=1)
                squares_y += np.square(np.abs(features_y)).sum(axis=1)
            if self.signature is not None:
                signature = self.signature[frequencies]
                features_x *= np.tile(signature, features_x.shape[1] // len(signature))
            gram += features_x @ features_y.conj().T
        if self.spec.normalize:
            gram /= np.sqrt(squares_x)[:, None]
            gram /= np.sqrt(squares_y)
        return gram

    def gram_operations(self, x: Rows, y: Rows) -> int:
        """Multiplications that `gram` takes."""
        return int((x.size + y.size) * self.n_frequencies + x.shape[0] * y.shape[0] * self.n_output)

    def exact_gram(self, x: Rows, y: Rows) -> Matrix:
        """The kernel itself, (n, m); with `normalize` what those features approximate, k/k(0)."""
        gram = self.kernel.exact(self.kernel.prepared(x, "/x"), self.kernel.prepared(y, "/y"))
        if self.spec.normalize:
            gram /= self.kernel.at_zero(self.spec.input_dim)
        return gram

    def exact_operations(self, x: Rows, y: Rows) -> int:
        """Multiplications that take as long as `exact_gram`."""
        return int(x.shape[0] * y.shape[0] * self.spec.input_dim)

    def exact_bytes(self, x: Rows, y: Rows) -> int:
        """Memory for the rows that the exact kernel takes."""
        return int(8 * (x.shape[0] + y.shape[0]) * self.spec.input_dim)

    def exact_pairs(self, x: Rows, y: Rows) -> Matrix:
        """As `exact_gram`, pair by pair."""
        lags = self._lags(x, y)
        exact = np.zeros(len(lags))
        for kernel, coordinates, weight in self.kernel.blocks(self.spec.input_dim):
            of = lags if coordinates is None else lags[:, coordinates]
            exact += weight * kernel.gram(of, np.zeros((1, of.shape[1])))[:, 0]
        if self.spec.normalize:
            exact /= self.kernel.at_zero(self.spec.input_dim)
        return exact

    def estimated_pairs(self, x: Rows, y: Rows) -> Array:
        """Inner products of the features of row i of x and row i of y; complex for the form `complex`."""
        of_x, of_y = self.transform(x), self.transform(y).conj()
        if self.signature is not None:
            of_x *= np.tile(self.signature, of_x.shape[1] // len(self.signature))
        products: Array = np.einsum("ij,ij->i", of_x, of_y, dtype=np.result_type(of_x, np.float64))
        return products

    def check_rows(self, rows: Rows, pointer: str) -> None:
        """Those that the kernel cannot prepare are refused."""
        self.kernel.prepared(rows, pointer)

    def baseline(self, seed: int) -> BaseSpec:
        """Of a map of as many Monte Carlo frequencies."""
        changes = {"sampler": MonteCarlo(kind="monte_carlo"), "s": self.n_frequencies, "seed": seed}
        return self.spec.model_copy(update=changes)

    def closed_forms(self, x: Rows, y: Rows, gamma: float | None = None) -> ClosedForms:
        """Those of independent frequencies, of control variates and of moment matching."""
        del gamma
        return variances.closed_forms(self.spec, self.baseline(0), self._lags(x, y))

    def spectrum(self) -> Spectrum:
        """The frozen frequencies and weights, with the kernel."""
        frequencies, weights = (self.arrays[name].astype(np.float64) for name in ("frequencies", "weights"))
        if not self.spec.normalize:
            return Spectrum(frequencies, weights, self.kernel, 1.0)
        return Spectrum(frequencies, weights / weights.sum(), self.kernel, self.kernel.at_zero(self.spec.input_dim))

    def _lags(self, x: Rows, y: Rows) -> Matrix:
        """Differences of the rows as the kernel compares them."""
        lags: Matrix = dense(self.kernel.prepared(x, "/x")) - dense(self.kernel.prepared(y, "/y"))
        return lags

    def _check_range(self, rows: Rows) -> None:
        most = float(np.finfo(self.spec.numpy_dtype).max) / 4
        entry = largest(rows)
        if entry and self._largest_norm > most / entry:
            raise InvalidInput(
                f"an entry of size {entry:.3g} makes phases w·x that leave the range of {self.spec.dtype.value}; "
                f"this map takes entries up to {most / self._largest_norm:.3g}"
            )

    def _features(self, rows: Rows, frequencies: slice) -> Array:
        count = frequencies.stop - frequencies.start
        features = np.empty((rows.shape[0], count * self.n_output // self.n_frequencies), self.gram_dtype)
        self._fill(features, rows, frequencies)
        return features

    def _fill(self, out: Array, rows: Rows, frequencies: slice) -> None:
        """Features of some rows and frequencies, computed in place where the form allows."""
        directions, amplitudes = self._directions[:, frequencies], self._amplitudes[frequencies]
        if self.spec.form is Form.complex:
            phases = rows @ directions
            np.cos(phases, out=out.real)
            np.sin(phases, out=out.imag)
            np.conjugate(out, out=out)
            out *= amplitudes
            return
        cosines = out[:, : len(amplitudes)]
        _product(rows, directions, cosines)
        if self.spec.form is Form.phase and self._offsets is not None:
            cosines += self._offsets[frequencies]
        else:
            sines = out[:, len(amplitudes) :]
            np.sin(cosines, out=sines)
            sines *= amplitudes
        np.cos(cosines, out=cosines)
        cosines *= amplitudes


def _columns(spec: BaseSpec, n_frequencies: int) -> int:
    return n_frequencies * (2 if spec.form is Form.cos_sin else 1)


def _product(rows: Rows, directions: Floats, out: Floats) -> None:
    if isinstance(rows, np.ndarray):
        np.matmul(rows, directions, out=out)
    else:
        out[...] = rows @ directions


def _streams(seed: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(seed).spawn(2)
