"""Maps of shift-invariant kernels: Fourier features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from app.core.arrays import Array, Floats, Rows, dense, largest, row_blocks
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.kernels.base import ShiftInvariantKernel
from app.core.maps.base import Arrays, Built
from app.core.maps.drawing import check_arrays, frequency_set, uniform_angles
from app.core.spec import Dtype, Form, MapSpec, allocations

# Phases computed at a time: small enough to stay in the cache between product and cosine.
_PHASES_PER_BLOCK = 1 << 18
# Features held at a time while a Gram block is summed up; more if the input itself is larger.
_FEATURES_PER_BLOCK = 1 << 22


class FourierMap:
    """Features z with z(x)·z(y) = Σ ξ_l cos(w_l·(x − y)) ≈ k(x − y).

    Arrays, in the map's dtype: `frequencies` (n_frequencies, d), `weights` (n_frequencies,) and, for the form
    `phase`, `offsets` (n_frequencies,) in [0, 2π); where weights are negative, `signature` (n_frequencies,) of ±1, and
    then it is Σ signature_l z_l(x) z_l(y) that approximates k.
    """

    parameter_stream = None

    def __init__(self, spec: MapSpec, arrays: Arrays) -> None:
        if not isinstance(spec.kernel, ShiftInvariantKernel):
            raise TypeError(f"kernel {spec.kernel.kind} has no frequencies")
        self.spec = spec
        self.kernel = spec.kernel
        # (d, n_frequencies) and contiguous: the layout that dense and sparse products both take without a copy.
        self._directions: Floats = np.ascontiguousarray(arrays["frequencies"].T)
        self._weights: Floats = arrays["weights"]
        self._offsets: Floats | None = arrays.get("offsets")
        self._amplitudes = np.sqrt(np.abs(self._weights) * (2 if spec.form is Form.phase else 1))
        self.signature: NDArray[np.int8] | None = arrays.get("signature")
        self._feature_dtype = np.result_type(
            spec.numpy_dtype, np.complex64 if spec.form is Form.complex else np.float32
        )
        with np.errstate(over="ignore"):  # an infinite norm takes no entry but 0
            self._largest_norm = max(
                float(np.abs(arrays["frequencies"][block]).sum(axis=1, dtype=np.float64).max())
                for block in row_blocks(self.n_frequencies, _PHASES_PER_BLOCK // spec.input_dim)
            )

    @staticmethod
    def frozen_bytes(spec: MapSpec) -> int:
        """The most that the arrays that `build` will make can take, a byte a frequency for the signature included."""
        columns = spec.input_dim + 1 + (spec.form is Form.phase)
        return sum(share.size for share in allocations(spec)) * (columns * spec.numpy_dtype.itemsize + 1)

    @staticmethod
    def build(spec: MapSpec, building: Building | None = None) -> Built:
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

    @property
    def arrays(self) -> Arrays:
        """The frozen arrays by name."""
        arrays: Arrays = {"frequencies": self._directions.T, "weights": self._weights}
        if self.signature is not None:
            arrays["signature"] = self.signature
        if self._offsets is not None:
            arrays["offsets"] = self._offsets
        return arrays

    @property
    def n_frequencies(self) -> int:
        """Number of frequencies after building."""
        return len(self._weights)

    @property
    def n_output(self) -> int:
        """Columns of a transformed row."""
        return _columns(self.spec, self.n_frequencies)

    @property
    def feature_dtype(self) -> np.dtype[Any]:
        """Dtype of the features."""
        return self._feature_dtype

    @property
    def gram_dtype(self) -> np.dtype[Any]:
        """Dtype of a Gram block."""
        return self._feature_dtype

    @property
    def bytes(self) -> int:
        """Memory of the opened map."""
        return sum(array.nbytes for array in self.arrays.values())

    def transform(self, rows: Rows) -> Array:
        """Features of the rows, (n, d) to (n, n_output) in `feature_dtype`.

        Raises:
            InvalidInput: entries so large that a phase w·x could leave the range of the dtype.
        """
        rows = self.kernel.prepared(rows, "/vectors")
        self._check_range(rows)
        features = np.empty((rows.shape[0], self.n_output), self._feature_dtype)
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
        gram = np.zeros((n, m), self._feature_dtype)
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

    def exact_gram(self, x: Rows, y: Rows) -> NDArray[np.float64]:
        """The kernel itself, (n, m); with `normalize` what those features approximate, k/k(0)."""
        x, y = self.kernel.prepared(x, "/x"), self.kernel.prepared(y, "/y")
        gram = self.kernel.gram(dense(x), dense(y))
        if self.spec.normalize:
            gram /= sum(block.weight for block in self.kernel.blocks(self.spec.input_dim))
        return gram

    def exact_operations(self, x: Rows, y: Rows) -> int:
        """Multiplications that take as long as `exact_gram`."""
        return int(x.shape[0] * y.shape[0] * self.spec.input_dim)

    def exact_bytes(self, x: Rows, y: Rows) -> int:
        """Memory for the rows that the exact kernel takes."""
        return int(8 * (x.shape[0] + y.shape[0]) * self.spec.input_dim)

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
        features = np.empty((rows.shape[0], count * self.n_output // self.n_frequencies), self._feature_dtype)
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


def _columns(spec: MapSpec, n_frequencies: int) -> int:
    return n_frequencies * (2 if spec.form is Form.cos_sin else 1)


def _product(rows: Rows, directions: Floats, out: Floats) -> None:
    if isinstance(rows, np.ndarray):
        np.matmul(rows, directions, out=out)
    else:
        out[...] = rows @ directions


def _streams(seed: int) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(seed).spawn(2)
