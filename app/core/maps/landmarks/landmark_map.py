"""The family of landmark maps: Nyström features, from kernel values of rows with landmarks."""

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy import sparse

from app.core.arrays import Array, Floats, Matrix, Rows, blocks_of_entries, in_dtype, largest, made_dense, vectors
from app.core.building import Building
from app.core.datasets import held_out, sample_rows
from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, ShiftInvariantKernel
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.kernels.rounding import coarseness_warnings
from app.core.maps.base import FeatureMap
from app.core.maps.landmarks.features import LandmarkFeatures, landmark_block, profile
from app.core.maps.landmarks.samplers import Landmarks, Selection, UploadedLandmarks
from app.core.maps.landmarks.selection import SELECTIONS
from app.core.maps.landmarks.selection.base import own_values
from app.core.maps.landmarks.selection.leverage import MOST_PILOTS
from app.core.maps.terms import Arrays, BaseSpec, Built, Fetched, Form, FrozenArray, Gives
from app.core.norms import squared_norms, unit_or_zero_rows
from app.core.panels import add_products
from app.core.progress import (
    Inner,
    Pause,
    Progress,
    begin_anew,
    no_pause,
    pack_arrays,
    pause_of,
    state_before,
    unpack_arrays,
)
from app.core.samplers.base import AnySampler
from app.core.samplers.monte_carlo import MonteCarlo

# The most entries of all landmarks together, sparse and dense; landmarks come from a dataset or a request.
_MOST_ENTRIES, _MOST_DENSE_ENTRIES = 1 << 24, 1 << 26
# Landmarks that may have more entries are for a job: each takes up to 160 bytes while the map is built.
_MOST_ENTRIES_IN_REQUEST = 1 << 22
# The most entries of a vector where rows are compared in dense form, with some copies of each.
_MOST_DENSE_COLUMNS = 1 << 22


def frozen_landmarks(s: int, input_dim: int, dtype: np.dtype[np.floating]) -> dict[str, FrozenArray]:
    """Return the arrays that s landmarks may be frozen as, each with its largest possible shape.

    Column numbers and ends of rows are float64, which holds them exactly.
    """
    entries, of_columns = min(s * input_dim, _MOST_ENTRIES), np.dtype(np.float64)
    rows = min(s, _MOST_DENSE_ENTRIES // input_dim)  # 0 for vectors so long that landmarks must be sparse
    return {
        "landmarks": FrozenArray((rows, input_dim), dtype),
        "landmark_values": FrozenArray((entries,), dtype),
        "landmark_columns": FrozenArray((entries,), of_columns),
        "landmark_ends": FrozenArray((s + 1,), of_columns),
    }


def check_made_dense(s: int, input_dim: int, kernel: AnyKernel, pointer: str) -> None:
    """Raise InvalidInput if the kernel makes sparse rows dense, and s dense landmarks have too many entries."""
    if not kernel.compares_sparse and s * input_dim > _MOST_DENSE_ENTRIES:
        most = _MOST_DENSE_ENTRIES // input_dim
        takes = f"got {s}; the most for vectors of {input_dim} entries is {most}" if most else "none fits"
        raise InvalidInput(f"kernel {kernel.kind} compares landmarks in their dense form: {takes}", pointer)


def landmark_arrays(landmarks: Rows, pointer: str) -> Arrays:
    """Return the landmarks (s, d) as frozen arrays; InvalidInput if they have too many entries."""
    size = landmarks.size if isinstance(landmarks, np.ndarray) else landmarks.nnz
    most = _MOST_DENSE_ENTRIES if isinstance(landmarks, np.ndarray) else _MOST_ENTRIES
    if size > most:
        raise InvalidInput(f"the landmarks have {size} entries; {most} are the most: take a smaller s", pointer)
    if isinstance(landmarks, np.ndarray):
        return {"landmarks": landmarks}
    return {
        "landmark_values": landmarks.data,
        "landmark_columns": landmarks.indices.astype(np.float64),
        "landmark_ends": landmarks.indptr.astype(np.float64),
    }


def opened_landmarks(arrays: Arrays, input_dim: int) -> Rows:
    """Return the landmarks, (s, d), from their frozen arrays."""
    if "landmarks" in arrays:
        return arrays["landmarks"]
    indices, ends = (arrays[name].astype(np.int64) for name in ("landmark_columns", "landmark_ends"))
    return sparse.csr_array((arrays["landmark_values"], indices, ends), shape=(len(ends) - 1, input_dim))


CUTS = {"float32": 1e-6, "float64": 1e-12}
"""Cut in each dtype, relative to the largest eigenvalue: below it, eigenvalues are lost in rounding of kernels."""
LONG_DECOMPOSITION = 1024
"""Number of landmarks from which on the eigenvalues of their kernel block take more than a second."""

# Limits of the mean of k(l, l), in units of the least and largest numbers of the dtype, so that results stay in range.
_LEAST_FACTOR, _MOST_FACTOR = 1e8, 0.25


def root_of(gram: Matrix, dtype: np.dtype[np.floating], pointer: str) -> Floats:
    """Compute V Λ^(−1/2), (s, r), of a kernel block K = V Λ Vᵀ, (s, s), over its r eigenvalues above the cut.

    Eigenvalues are in descending order. The cut is the largest eigenvalue times `CUTS` or, for more than some thousand
    landmarks, times s·2.2e-16, as eigenvalues below that are rounding errors themselves.

    Raises:
        InvalidInput: the kernel of all landmarks is 0, or so large or small that it leaves too little room in the
            dtype.
    """
    least, most = _LEAST_FACTOR * float(np.finfo(dtype).tiny), _MOST_FACTOR * float(np.finfo(dtype).max)
    size = float(np.trace(gram)) / len(gram) if np.isfinite(gram).all() else np.inf
    if not least < size < most:
        helps = "; dtype float64 has more room" if dtype == np.float32 else ""
        raise InvalidInput(
            f"the landmarks' kernel values average {size:.3g}; {dtype} takes {least:.1e} to {most:.1e}{helps}", pointer
        )
    values, vectors = np.linalg.eigh(gram)
    kept = np.flatnonzero(values > max(CUTS[dtype.name], len(gram) * np.finfo(np.float64).eps) * values[-1])[::-1]
    root: Floats = (vectors[:, kept] / np.sqrt(values[kept])).astype(dtype)
    return root


def add_root(
    spec: BaseSpec, kernel: AnyKernel, arrays: Arrays, progress: Progress, state: Callable[[], bytes]
) -> tuple[Arrays, tuple[str, ...]]:
    """Return the arrays with the root added, and a warning if eigenvalues are cut."""
    landmarks = opened_landmarks(arrays, spec.input_dim)
    s = landmarks.shape[0]
    if s > LONG_DECOMPOSITION:
        progress.before_long_call(state)
    root = root_of(landmark_block(kernel, landmarks, partial(progress.checkpoint, state)), spec.numpy_dtype, "/sampler")
    cut = s - root.shape[1]
    told = f"{cut} of {s} landmarks are all but combinations of the others in {spec.dtype.value}: {s - cut} columns"
    return {**arrays, "root": root}, (told,) if cut else ()


# A tenth of the rows is held out, and no more than `_MOST_HELD_OUT`.
_HELD_OUT_SHARE, _MOST_HELD_OUT = 10, 1000
MOST_MEASURED = 10_000
"""Maximum number of training rows whose errors are measured; of more rows, a sample is measured."""
# Sums of kernels beyond these are refused: results computed from them would leave the range of float64.
_LEAST_SUM, _MOST_SUM = 1e-290, 1e290
# Entries of rows for which k(x, x) is computed at a time.
_ENTRIES_PER_BLOCK = 1 << 20
# First byte of the state of a selection that is unfinished, and of one that is finished.
_SELECTING, _SELECTED = b"0", b"1"


class Split(NamedTuple):
    """Training rows and held-out rows of a dataset, as a kernel compares them."""

    learned: Rows
    held_out: Rows
    warnings: tuple[str, ...] = ()
    """Warnings about the rows, for the client."""


def split(spec: BaseSpec, sampler: Landmarks, kernel: AnyKernel, building: Building) -> Split:
    """Read the dataset that a sampler names, and split it into training and held-out rows by the seed of the spec.

    Raises:
        InvalidInput: there is no such dataset, it has other columns than the map, fewer training rows than the sampler
            asks for, rows for which the kernel is undefined, or kernels so large or small that sums of them leave the
            range of float64.
    """
    found, pointer = building.rows(sampler.dataset, "/sampler/dataset"), "/sampler/dataset"
    n, progress = found.shape[0], building.progress
    if min(found.size, _size(spec) * spec.input_dim) > _MOST_ENTRIES_IN_REQUEST:
        progress.before_long_call(partial(state_before, progress))
    others, apart = held_out(n, min(_MOST_HELD_OUT, n // _HELD_OUT_SHARE), _stream(spec.seed, 0))
    wanted = len(others) if sampler.rows is None else sampler.rows
    if wanted > len(others):
        raise InvalidInput(
            f"rows is {wanted}; dataset {sampler.dataset!r} has {n}, {len(apart)} of them held out", "/sampler/rows"
        )
    try:
        rows = kernel.prepare(in_dtype(vectors(found, spec.input_dim, spec.numpy_dtype), spec.numpy_dtype))
        _check_sum(kernel, rows)
    except InvalidInput as error:
        raise InvalidInput(f"dataset {sampler.dataset!r}: {error.detail}", pointer) from None
    if wanted < len(others):
        others = others[sample_rows(len(others), wanted, _stream(spec.seed, 1))]
    doubts = too_coarse(spec, found, f"dataset {sampler.dataset!r}", pause_of(progress))
    return Split(rows[others], rows[apart], doubts)


def too_coarse(spec: BaseSpec, rows: Rows, called: str, pause: Pause = no_pause) -> tuple[str, ...]:
    """Return a warning if the dtype of the map is too coarse for some of the rows that landmarks come from."""
    return coarseness_warnings(spec.kernel.rounding(spec.numpy_dtype), rows, False, called, pause)


def freeze_selection(
    spec: BaseSpec, sampler: Landmarks, s: int, kernel: AnyKernel, rows: Rows, building: Building
) -> tuple[Arrays, dict[str, float], Callable[[], bytes]]:
    """Select landmarks, and return their frozen arrays, the report, and a function that makes the state to resume from.

    A selection that an earlier attempt has finished is not repeated.
    """
    progress = building.progress
    state = progress.restore() or _SELECTING
    if state[:1] == _SELECTED:
        held = unpack_arrays(state[1:])
        report = dict(zip(held.pop("names").tolist(), held.pop("figures").tolist(), strict=True))
        arrays: Arrays = held
    else:
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(spec.seed).spawn(1)[0]))
        inside = Inner(progress, lambda of: _SELECTING + of(), state[1:] or None, lambda step: progress.report(step, s))
        found = SELECTIONS[sampler.selection](kernel, rows, s, rng, inside, building.threads)
        report, arrays = found.report, landmark_arrays(found.landmarks, "/s")
    names, figures = np.array([*report]), np.array([*report.values()])

    def keep() -> bytes:
        return _SELECTED + pack_arrays(names=names, figures=figures, **arrays)

    progress.checkpoint(keep)
    return arrays, report, keep


def measure_loss(kernel: AnyKernel, features: Callable[[Rows], Floats], rows: Split, seed: int) -> dict[str, float]:
    """Measure the share of the kernel that features z miss, 1 − Σ ‖z(x)‖² / Σ k(x, x) over rows x, for a report.

    `trace_error` is this share for up to 10,000 of the training rows, `trace_error_held_out` for the held-out rows, if
    there are any. `effective_dimension` is Σ μ/(μ + e), where μ are the eigenvalues of the mean of z zᵀ over the
    training rows, and e is the mean of k(x, x) − ‖z(x)‖² over these rows.
    """
    n = rows.learned.shape[0]
    some = rows.learned if n <= MOST_MEASURED else rows.learned[sample_rows(n, MOST_MEASURED, seed)]
    z = features(some).astype(np.float64)
    missed, whole = _trace_loss(kernel, some, z)
    report = {"trace_error": missed / whole if whole else 0.0}
    mu = np.maximum(np.linalg.eigvalsh(z.T @ z / len(z)), 0)
    each = max(missed / len(z), np.finfo(np.float64).eps * float(mu.sum()))
    report["effective_dimension"] = float((mu / (mu + each)).sum()) if each else 0.0
    if rows.held_out.shape[0]:
        missed, whole = _trace_loss(kernel, rows.held_out, features(rows.held_out).astype(np.float64))
        report["trace_error_held_out"] = missed / whole if whole else 0.0
    return report


def _check_sum(kernel: AnyKernel, rows: Rows) -> None:
    """Raise InvalidInput if Σ k(x, x) leaves too little room in float64 for results computed from it."""
    own = (own_values(kernel, rows[part]) for part in blocks_of_entries(rows, _ENTRIES_PER_BLOCK))
    with np.errstate(over="ignore"):
        whole = sum(float(some.sum()) for some in own)
    if whole and not _LEAST_SUM <= whole <= _MOST_SUM:
        raise InvalidInput(
            f"the rows' kernels with themselves sum to {whole:.3g}, outside {_LEAST_SUM:.0e} to {_MOST_SUM:.0e}"
        )


def _trace_loss(kernel: AnyKernel, rows: Rows, features: Matrix) -> tuple[float, float]:
    """Compute Σ (k(x, x) − ‖z(x)‖²) and Σ k(x, x)."""
    diagonal = own_values(kernel, rows)
    return float((diagonal - (features**2).sum(axis=1)).sum()), float(diagonal.sum())


def _stream(seed: int, number: int) -> int:
    """Derive a separate seed for the sample of this number."""
    return int(np.random.SeedSequence(seed).spawn(number + 2)[-1].generate_state(1, np.uint64)[0])


# Square matrices held while building: the kernel block, its eigenvectors, and the workspace of LAPACK.
_MATRICES_WHILE_BUILDING = 6
# Squares of smaller norms may have lost digits.
_LEAST_NORM = 1e-140
# Memory of one measured feature: kernel value, feature, and feature in float64.
_BYTES_PER_FEATURE = 24


class LandmarkMap(FeatureMap):
    """Features z(x) = k(x, L) V Λ^(−1/2) with landmarks L and k(L, L) = V Λ Vᵀ, over the eigenvalues above a cut.

    z(x)·z(y) is exactly the kernel if x or y is a landmark and no eigenvalue is cut; ‖z(x)‖² is never above k(x, x).
    With `normalize`, rows have unit norm, and the kernel is k(x, y)/√(k(x, x) k(y, y)), or 0 if k(x, x) is 0. A row
    whose kernel with all landmarks is 0 stays 0.

    Arrays, in the map's dtype: `root` (s, n_output), V Λ^(−1/2); and `landmarks` (s, d) or, if landmarks are sparse,
    `landmark_values`, `landmark_columns` and `landmark_ends`, the parts of a CSR matrix, the last two in float64.
    """

    samplers = (Landmarks, UploadedLandmarks)
    gives = frozenset({Gives.features, Gives.anchors})
    unit = "landmarks"
    rounds_exact_rows = False
    fetched = MappingProxyType(
        {
            "landmarks": Fetched(2, "the landmarks, (n_frequencies, input_dim), as the kernel compares them."),
            "landmark_values": Fetched(1, "the entries of sparse landmarks that are not 0, row after row."),
            "landmark_columns": Fetched(1, "the columns of these entries.", "float64"),
            "landmark_ends": Fetched(
                1, "where the entries of each sparse landmark begin and end, (n_frequencies + 1,).", "float64"
            ),
            "root": Fetched(
                2, "the matrix that makes features of kernel values with the landmarks, (n_frequencies, n_output)."
            ),
        }
    )

    def __init__(self, spec: BaseSpec, arrays: Arrays, threads: int = 1) -> None:
        self.spec, self.arrays, self.threads = spec, arrays, threads
        self.kernel = _kernel(spec)
        self._landmarks = opened_landmarks(arrays, spec.input_dim)
        self._features = LandmarkFeatures(
            self.kernel, self._landmarks, arrays["root"], threads, is_relative=spec.normalize
        )
        self.n_frequencies, self.n_output = arrays["root"].shape
        self.gram_dtype = spec.numpy_dtype
        if spec.normalize:
            self.largest_feature = 1.0
        elif isinstance(self.kernel, ShiftInvariantKernel):
            self.largest_feature = float(np.sqrt(self.kernel.at_zero(spec.input_dim)))
        self.bytes = self._features.nbytes + sum(array.nbytes for array in arrays.values())

    @classmethod
    def check(cls, spec: BaseSpec) -> None:
        """Raise InvalidInput for a missing s, landmarks that do not fit, or a form of frequencies."""
        sampler = spec.sampler
        if spec.form is not Form.cos_sin:
            raise InvalidInput("form is for maps of frequencies; landmark maps have one form: leave it out", "/form")
        if isinstance(sampler, UploadedLandmarks):
            pointer = "/sampler/landmarks"
            sampler.check_rows(spec.input_dim)
        elif spec.s is None:
            raise InvalidInput("s is missing; it is the number of landmarks", "/s")
        else:
            pointer = "/s"
        check_made_dense(_size(spec), spec.input_dim, spec.kernel, pointer)
        _kernel(spec)

    @classmethod
    def size_for(cls, sampler: AnySampler, columns: int, input_dim: int) -> int | None:
        """Return a landmark for each column, up to `LONG_DECOMPOSITION`; None if the client uploads the landmarks."""
        if not isinstance(sampler, UploadedLandmarks):
            return min(columns, LONG_DECOMPOSITION)
        if len(sampler.landmarks) > columns:
            raise InvalidInput(
                f"expected up to {columns} landmarks for {columns} columns, got {len(sampler.landmarks)}"
            )
        return None

    @classmethod
    def frozen(cls, spec: BaseSpec) -> dict[str, FrozenArray]:
        """Return the arrays of landmarks, dense and sparse, and the root."""
        s = _size(spec)
        root = FrozenArray((s, s), spec.numpy_dtype)
        return {"root": root, **frozen_landmarks(s, spec.input_dim, spec.numpy_dtype)}

    @classmethod
    def largest(cls, spec: BaseSpec) -> tuple[int, int]:
        """Return the number of landmarks, and as many columns."""
        return _size(spec), _size(spec)

    @classmethod
    def frozen_bytes(cls, spec: BaseSpec) -> int:
        """Return the memory of the root, and of landmarks in the larger of their two forms."""
        arrays = cls.frozen(spec)
        of_dense = arrays["landmarks"].nbytes
        return arrays["root"].nbytes + max(of_dense, sum(array.nbytes for array in arrays.values()) - of_dense)

    @classmethod
    def drawing_bytes(cls, spec: BaseSpec) -> int:
        """Return the memory of decomposing a block of landmarks or pilots, of the arrays twice, and of some features.

        The dataset is not counted.
        """
        s, measured_features, side = _size(spec), 0, _size(spec)
        if isinstance(spec.sampler, Landmarks):
            learned = MOST_MEASURED if spec.sampler.rows is None else min(spec.sampler.rows, MOST_MEASURED)
            measured_features = _BYTES_PER_FEATURE * s * learned
            if spec.sampler.selection is Selection.leverage:
                side = max(s, min(2 * s, MOST_PILOTS))
        return 8 * _MATRICES_WHILE_BUILDING * side**2 + 2 * cls.frozen_bytes(spec) + measured_features

    @classmethod
    def build(cls, spec: BaseSpec, building: Building | None = None) -> Built:
        """Select landmarks, or take the uploaded ones, and decompose their kernel block."""
        building, sampler, kernel = building or Building(), spec.sampler, _kernel(spec)
        # Not a rule of the spec, as maps that stand may have more.
        if not kernel.compares_sparse and profile(kernel) is None and spec.input_dim > _MOST_DENSE_COLUMNS:
            detail = f"kernel {kernel.kind} compares dense vectors: {_MOST_DENSE_COLUMNS} entries are the most"
            raise InvalidInput(detail, "/input_dim")
        if isinstance(sampler, UploadedLandmarks):
            pointer = "/sampler/landmarks"
            came = spec.gate(sampler.as_rows(spec.input_dim), pointer)
            arrays = landmark_arrays(kernel.prepare(in_dtype(came, spec.numpy_dtype), pointer), pointer)
            made, warnings = add_root(spec, kernel, arrays, building.progress, begin_anew)
            s, rank = made["root"].shape
            if spec.s not in (None, s):
                warnings += (f"s = {spec.s} was not used: there are {s} landmarks",)
            return Built(made, s, rank, too_coarse(spec, came, "the landmarks") + warnings)
        if not isinstance(sampler, Landmarks):
            raise TypeError(f"sampler {sampler.kind} has no landmarks")
        rows = split(spec, sampler, kernel, building)
        arrays, report, state = freeze_selection(spec, sampler, _size(spec), kernel, rows.learned, building)
        made, warnings = add_root(spec, kernel, arrays, building.progress, state)
        warnings = rows.warnings + warnings
        landmarks = opened_landmarks(made, spec.input_dim)
        features = LandmarkFeatures(kernel, landmarks, made["root"], building.threads)
        pause = partial(building.progress.checkpoint, state)
        report |= measure_loss(kernel, lambda some: features.of(some, pause), rows, spec.seed)
        s, rank = made["root"].shape
        if s < _size(spec):
            warnings += (f"{s} landmarks say all of the rows that {_size(spec)} could; the map has {s}",)
        return Built(made, s, rank, warnings, report)

    def transform(self, rows: Rows, pause: Pause = no_pause) -> Array:
        """Compute the features of the rows."""
        return self._of(rows, "/vectors", pause)

    def check_block(self, rows: Rows, pointer: str, first: int, pause: Pause) -> None:
        """Raise InvalidInput if the kernel is undefined for a row, or kernels or features leave the dtype's range."""
        self._features.check(self.prepare_rows(rows, pointer, first), pause)

    def operations(self, rows: Rows) -> int:
        """Return the cost of kernel values, products with the root, and warnings, in multiplications of a product."""
        return self._features.operations(rows) + self.warning_operations(rows)

    def gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Array:
        """Compute inner products of the features, (n, m)."""
        of_x, of_y = self._of(x, "/x", pause), self._of(y, "/y", pause)
        gram = np.zeros((len(of_x), len(of_y)), self.gram_dtype)
        add_products(gram, of_x, of_y, self.threads, pause)
        if not np.isfinite(largest(gram)):
            raise InvalidInput(f"an inner product of features leaves the range of {gram.dtype}; smaller rows work")
        return gram

    def exact_gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Matrix:
        """Compute the exact kernel, (n, m); with `normalize`, of rows scaled to k(x, x) = 1."""
        gram = super().exact_gram(x, y, pause)
        if self.spec.normalize:
            gram /= np.outer(self._norms(x), self._norms(y))
        return gram

    def exact_pairs(self, x: Rows, y: Rows) -> Matrix:
        """Compute the exact kernel, pair by pair; with `normalize`, of rows scaled to k(x, x) = 1."""
        found = super().exact_pairs(x, y)
        if self.spec.normalize:
            found /= self._norms(x) * self._norms(y)
        return found

    @property
    def is_random(self) -> bool:
        """Whether landmarks were selected by the seed; uploaded landmarks are the same for every seed."""
        return isinstance(self.spec.sampler, Landmarks)

    def baseline(self, seed: int) -> BaseSpec | None:
        """Return the spec of a map of Monte Carlo frequencies with as many columns; None if there is no such map."""
        if not isinstance(self.kernel, ShiftInvariantKernel):
            return None
        sampler, s = MonteCarlo(kind="monte_carlo"), max(1, self.n_output // 2)
        try:
            return type(self.spec).model_validate(self.spec.model_dump() | {"sampler": sampler, "s": s, "seed": seed})
        except InvalidInput:  # more summands than frequencies
            return None

    def anchors(self) -> Rows:
        """Return the landmarks."""
        return self._landmarks

    def refusal(self, wanted: Gives, called: str = "this map") -> InvalidInput:
        """Return the error for codes, or for another result that landmark maps do not give."""
        of_codes = "codes come from kernel gmm with sampler gcws or dart_minhash"
        of_errors = "gram and max-error measure its error"
        helps = of_codes if wanted is Gives.codes else of_errors
        return InvalidInput(f"{super().refusal(wanted, called).detail}: its features are of landmarks; {helps}")

    def _norms(self, rows: Rows) -> Matrix:
        """Compute √k(x, x) of each row, (n,), or 1 if it is 0, as then all kernels of the row are 0."""
        norms = np.sqrt(super().exact_pairs(rows, rows))
        return np.where(norms > 0, norms, 1.0)

    def _of(self, rows: Rows, pointer: str, pause: Pause) -> Floats:
        features = self._features.of(rows, pause, lambda block, first: self.prepare_rows(block, pointer, first))
        if self.spec.normalize:
            norms, limits = np.sqrt(squared_norms(features)), np.finfo(features.dtype)
            least = max(_LEAST_NORM, float(limits.tiny))
            if (far := ~((norms >= least) & (norms <= limits.max))).any():
                features[far] = made_dense(unit_or_zero_rows(features[far]))
                norms[far] = 1
            features /= norms.astype(features.dtype)[:, None]
        return features


def _kernel(spec: BaseSpec) -> AnyKernel:
    """Return the kernel, as it compares rows rounded to the map's dtype."""
    kernel = spec.kernel
    return kernel.round_center(spec.numpy_dtype) if isinstance(kernel, GeneralizedMinMax) else kernel


def _size(spec: BaseSpec) -> int:
    """Return the largest possible number of landmarks."""
    if isinstance(spec.sampler, UploadedLandmarks):
        return len(spec.sampler.landmarks)
    if spec.s is None:
        raise TypeError("the spec was not checked")
    return spec.s
