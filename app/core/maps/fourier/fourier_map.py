"""The family of Fourier maps, and the variances of their kernel estimates that are known in closed form.

φ is the kernel divided by its value at 0: the characteristic function of w, E cos w·δ. All variances are for a pair of
rows that differ by δ, and s frequencies; those of the form complex are E|k̂ − k|², including the imaginary part.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from app.core.arrays import Array, Floats, Matrix, Rows, Whole, as_they_are, dense, largest, row_blocks
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.hashing import signed_codes
from app.core.hashing.code_laws import SignedLaw
from app.core.hashing.encodings import CodeOptions, Codes, Encoder
from app.core.hashing.signed_codes import SIGNED, Arcs, SignLaw
from app.core.kernels.base import AnyKernel, ShiftInvariantKernel
from app.core.maps.base import FeatureMap
from app.core.maps.fourier.features import Features, gram
from app.core.maps.fourier.forms import FORMS, amplitudes
from app.core.maps.fourier.projections import allocations, check_allocations, projection_of, spectral, unequal
from app.core.maps.terms import (
    Arrays,
    ArraysOnDemand,
    BaseSpec,
    Built,
    ClosedForms,
    Fetched,
    Form,
    FrozenArray,
    Gives,
    Spectrum,
)
from app.core.progress import Pause, no_pause
from app.core.samplers import FREQUENCY_SAMPLERS
from app.core.samplers.base import AnySampler, FrequencySampler
from app.core.samplers.moment_matching import MomentMatching
from app.core.samplers.monte_carlo import MonteCarlo
from app.core.threads import for_each

# Largest k(0): its square, and small multiples of that, are within the range of float64.
_MOST = 1e150


def closed_forms(spec: BaseSpec, independent: BaseSpec, lags: Matrix) -> ClosedForms:
    """Return variances of kernel estimates for pairs whose prepared rows differ by `lags` δ, (n, d).

    `independent` is the spec with independent frequencies. The summands of a kernel share s, and the variances of
    independent sums add up.

    Raises:
        InvalidInput: the kernel is so large that the variances leave the range of float64.
    """
    sums = {name: np.zeros(len(lags)) for name in ("monte_carlo", "first", "second", "rff", "nrff")}
    every = allocations(independent)
    at_zero = sum(allocation.block.weight for allocation in every)
    if at_zero > _MOST:
        reason = f"variances have its square, for which {_MOST:.3g} is the most"
        raise InvalidInput(f"the kernel of a row with itself is {at_zero:.3g}; {reason}")
    form, all_normal = FORMS[spec.form], True
    for (kernel, coordinates, weight), size in every:
        of = lags if coordinates is None else lags[:, coordinates]
        origin = np.zeros((1, of.shape[1]))
        at, at_twice = kernel.gram(of, origin)[:, 0], kernel.gram(2 * of, origin)[:, 0]
        factor = weight**2 / size
        sums["monte_carlo"] += factor * form.variance(at, at_twice)
        sums["rff"] += factor * FORMS[Form.phase].variance(at, at_twice)
        sums["nrff"] += factor * np.maximum(1 + at_twice / 2 - (7 - at_twice) * at**2 / 4, 0)
        deviations = kernel.normal_deviations(of.shape[1])
        if deviations is None:
            all_normal = False
            continue
        t = np.minimum(np.square(of * deviations).sum(axis=1), 1e4)  # e^−t is 0 from there on
        sums["first"] += factor * t * np.exp(-t) * form.is_complex
        sums["second"] += factor * np.square(t) * np.exp(-t) / 2
    for name in sums if spec.normalize else ("nrff",):
        sums[name] /= at_zero**2
    # Normalising divides by a random number in a form with offsets, and by a constant in all other forms.
    ratio = spec.normalize and form.has_offsets
    found = {"rff": sums["rff"]}
    if len(every) == 1:
        found["nrff"] = sums["nrff"]
    if not ratio:
        found["monte_carlo"] = sums["monte_carlo"]
    elif len(every) == 1:
        found["monte_carlo"] = sums["nrff"]
    if all_normal and not ratio:
        # At δ = 0 these differences are 0, and rounding may make them negative.
        found["cv1"] = np.maximum(sums["monte_carlo"] - sums["first"], 0)
        found["cv2"] = found["moment_matching"] = np.maximum(found["cv1"] - sums["second"], 0)
    base = spec.sampler.base if isinstance(spec.sampler, MomentMatching) else spec.sampler
    return ClosedForms(spec.sampler.kind if isinstance(base, MonteCarlo) else None, found)


def uniform_angles(n: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Floats:
    """Draw n angles in [0, 2π); an angle that rounds up to 2π in the dtype becomes 0."""
    angles = (2 * np.pi * rng.random(n)).astype(dtype)
    angles[angles >= 2 * np.pi] = 0
    return angles


# Entries of differences whose exact kernels one thread computes at a time, a tenth of a second or less.
_COORDINATES_PER_PART = 1 << 17
# The most bits that are held for the rows x, and for the rows y, of the pairs that are compared at a time.
_BITS_PER_BLOCK = 1 << 23
# The most bits that are held while rows are encoded.
_BITS_HELD = 1 << 27
# Multiplications that take as long as the calls for a block of frequencies of a Gram block.
_OPERATIONS_PER_BLOCK = 3_000_000

_NOISE_APART = "the report is of form cos_sin: the offsets of form phase add noise, which the gram diagnostic measures"


class FourierMap(FeatureMap):
    """Features z with z(x)·z(y) = Σ ξ_l cos(w_l·(x − y)) ≈ k(x − y).

    A projection computes phases of the rows, and the form of the spec turns phases into columns.

    Arrays, in the map's dtype: those of the projection, `weights` (n_frequencies,) and, for the form `phase`, `offsets`
    (n_frequencies,) in [0, 2π). If some weights are negative, there is `signature` (n_frequencies,) of ±1 too, and
    Σ signature_l z_l(x) z_l(y) approximates k.

    If all weights are equal, each frequency also gives a bit of a signed code, with parameters that are not frozen.
    Bits are as Raginsky and Lazebnik (2009) define them: they say on which side of a random threshold the cosine of the
    phase lies.
    The sign of cos(w·x + b) + t is never computed: it is positive if the phase lies on an arc of the circle, which one
    multiplication, one addition and a comparison decide. So a bit does not depend on any library's cosine and, as
    phases are, it is the same for every order, batch and form of the rows.
    """

    samplers = FREQUENCY_SAMPLERS
    gives = frozenset({Gives.features, Gives.frequencies, Gives.codes})
    operations_per_code = 32
    unit = "frequencies"
    usual_encoders = (SIGNED,)
    fetched = MappingProxyType(
        {
            "frequencies": Fetched(2, "the frequencies, (n_frequencies, input_dim)."),
            "weights": Fetched(1, "the weights of the frequencies, (n_frequencies,)."),
            "signs": Fetched(3, "the signs of sampler structured_orthogonal, bits, (blocks, 3, D/8).", "uint8"),
            "radii": Fetched(1, "the lengths of sampler structured_orthogonal, (n_frequencies,), at length scale 1."),
            "offsets": Fetched(1, "the offsets of the form phase, (n_frequencies,) in [0, 2π)."),
            "signature": Fetched(1, "the signs ±1 of the weights, (n_frequencies,), if some are negative.", "int8"),
        }
    )
    kernel: ShiftInvariantKernel

    def __init__(self, spec: BaseSpec, arrays: Arrays, threads: int = 1) -> None:
        self.threads = threads
        self.spec = spec
        self.kernel, _ = spectral(spec)
        self.form = spec.form
        projection = self._projection = projection_of(spec)(spec, arrays)
        s = self.n_frequencies = projection.n_frequencies
        weights = self._weights = projection.weights(spec, arrays)
        self.signature = arrays.get("signature")
        self._features = Features(spec, projection, weights, arrays, threads)
        self.gram_dtype, self.largest_feature = self._features.dtype, self._features.largest
        self.n_output = s * self._features.per_frequency
        # The functions must not refer to `self`, or the map would be in a reference cycle.
        of_set: dict[str, Callable[[], Array]] = {
            "frequencies": projection.frequencies,
            "weights": lambda: np.array(weights),
        }
        self.arrays = ArraysOnDemand({name: arrays[name] for name in arrays.keys() - of_set.keys()}, of_set)
        if not projection.is_dense:
            of_each = FrozenArray((s,), spec.numpy_dtype)
            self.computed = {"frequencies": FrozenArray((s, spec.input_dim), spec.numpy_dtype), "weights": of_each}
        self.bytes = projection.bytes + self._features.nbytes + 16 * s  # of the arcs

    @classmethod
    def check(cls, spec: BaseSpec) -> None:
        """Raise InvalidInput for a kernel without frequencies, or with a summand that the sampler does not serve."""
        check_allocations(spec)

    @classmethod
    def size_for(cls, sampler: AnySampler, columns: int, input_dim: int) -> int | None:
        """Return the sampler's best number of frequencies up to half of `columns`; None if the sampler dictates it."""
        if not isinstance(sampler, FrequencySampler):
            raise TypeError(f"sampler {sampler.kind} draws no frequencies")
        most = columns // 2
        try:
            dictated = sampler.count(None, input_dim)
        except InvalidInput:
            return sampler.best_size(most)
        if dictated > most:
            raise InvalidInput(f"{sampler.kind} may make {dictated} frequencies; {columns} columns hold {most}")
        return None

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, columns: int, dataset: str | None) -> tuple[AnySampler, ...]:
        """Return samplers for half as many frequencies as columns; none if the kernel has no frequencies."""
        if not isinstance(kernel, ShiftInvariantKernel):
            return ()
        return super().suggest(kernel, input_dim, columns // 2, dataset)

    @classmethod
    def frozen(cls, spec: BaseSpec) -> dict[str, FrozenArray]:
        """Return the arrays of the projection, weights and signature if frozen, and offsets for the form `phase`."""
        s = sum(allocation.size for allocation in allocations(spec))
        of_each = FrozenArray((s,), spec.numpy_dtype)
        arrays = projection_of(spec).frozen(spec, s)
        if projection_of(spec).is_dense:
            arrays |= {"weights": of_each, "signature": FrozenArray((s,), np.dtype(np.int8))}
        if FORMS[spec.form].has_offsets:
            arrays["offsets"] = of_each
        return arrays

    @classmethod
    def largest(cls, spec: BaseSpec) -> tuple[int, int]:
        """Return the most frequencies, and columns, that the sampler may make for all summands of the kernel."""
        s = sum(allocation.size for allocation in allocations(spec))
        return s, s * FORMS[spec.form].per_frequency

    @classmethod
    def derived_arrays(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """Return the `amplitudes` of the frequencies, and the arrays that the projection computes phases with."""
        projection = projection_of(spec)
        of_form = amplitudes(spec, projection.weights(spec, arrays))
        return {"amplitudes": of_form, **projection.derived_arrays(spec, arrays)}

    @classmethod
    def drawing_bytes(cls, spec: BaseSpec) -> int:
        """Return the memory of frozen arrays, and of drawing or of the open projection, whichever is more.

        Drawing takes the sampler's memory at the largest summand; the sets of several summands are joined in float64.
        """
        _, sampler = spectral(spec)
        every = allocations(spec)
        s = sum(allocation.size for allocation in every)
        most = max(sampler.drawing_bytes(allocation.size, allocation.block.dim(spec.input_dim)) for allocation in every)
        together = 2 * 8 * s * spec.input_dim if len(every) > 1 else 0
        return cls.frozen_bytes(spec) + max(most + together, projection_of(spec).opening_bytes(spec, s))

    @classmethod
    def build(cls, spec: BaseSpec, building: Building | None = None) -> Built:
        """Draw frequencies and offsets, from separate streams of the seed."""
        streams = np.random.SeedSequence(spec.seed).spawn(2)
        for_frequencies, for_offsets = (np.random.Generator(np.random.PCG64(stream)) for stream in streams)
        arrays, s, warnings, report = projection_of(spec).draw(spec, for_frequencies, building or Building())
        form = FORMS[spec.form]
        if form.has_offsets:
            arrays["offsets"] = uniform_angles(s, spec.numpy_dtype, for_offsets)
            warnings += (_NOISE_APART,) if report else ()
        return Built(arrays, s, s * form.per_frequency, warnings, report)

    @classmethod
    def capabilities(cls, spec: BaseSpec) -> frozenset[Gives]:
        """Return the results of the family, without codes if weights differ."""
        return cls.gives if unequal(spec) is None else cls.gives - {Gives.codes}

    def transform(self, rows: Rows, pause: Pause = no_pause) -> Array:
        """Compute features.

        InvalidInput if the kernel is undefined for a row, or if a phase could leave the dtype's range.
        """
        ready = partial(self._in_range, "/vectors")
        return self._features.of(rows, slice(0, self.n_frequencies), ready, pause, self._features.norms_differ)

    def codes(self, rows: Rows, encoder: Encoder = SIGNED, pointer: str = "/vectors", pause: Pause = no_pause) -> Codes:
        """Compute the encoded bits of the rows; InvalidInput as in `transform`, and if weights differ."""
        self.check_gives(Gives.codes)
        blocks = [*row_blocks(rows.shape[0], _BITS_HELD // self.n_frequencies)]
        if len(blocks) <= 1:
            return self._codes(rows, encoder, pointer, 0, pause)
        return np.concatenate([self._codes(rows[some], encoder, pointer, some.start, pause) for some in blocks])

    def _codes(self, rows: Rows, encoder: Encoder, pointer: str, first: int, pause: Pause) -> Codes:
        """Compute the encoded bits of rows, from row `first` of the request on; all of their bits are held."""
        s = self.n_frequencies
        packed = np.empty((rows.shape[0], -(-s // 8)), np.uint8)

        def write(block: slice, of: slice, phases: Floats) -> None:
            offsets, half_widths = self._arcs.offsets[of], self._arcs.half_widths[of]
            signed_codes.write_signs(phases, offsets, half_widths, packed[block], of.start // 8)

        def ready(part: Rows, at: int) -> Rows:
            return self._in_range(pointer, part, first + at)

        self._features.use(rows, slice(0, s), ready, write, pause)
        return signed_codes.write_bits(packed, s, encoder)

    @cached_property
    def _arcs(self) -> Arcs:
        return signed_codes.arcs(self.spec.seed, self.n_frequencies)

    def encoder_of(self, options: CodeOptions) -> Encoder:
        """Return the encoder of these options; packed if they name no encoding."""
        return signed_codes.signed_encoder(options, self.n_frequencies)

    def code_law(self, called: str = "this map") -> SignedLaw:
        """Return the collision model of the kernel; InvalidInput if weights differ, or no model relates it to codes."""
        self.check_gives(Gives.codes, called)
        law = self._sign_law
        if law is None:
            raise InvalidInput(f"the kernel cannot be estimated from codes of {called}: {self._explain_missing_law()}")
        return SignedLaw(self.n_frequencies, law)

    def similarity(
        self, x: Rows, y: Rows, by: Encoder, gamma: float | None, pause: Pause = no_pause
    ) -> dict[str, Array]:
        """Return the share of codes that agree, the exact kernel and, if there is a collision model, the estimate."""
        counts, exact = np.empty(x.shape[0], np.int64), np.empty(x.shape[0])
        for block in row_blocks(len(exact), max(1, _BITS_PER_BLOCK // self.n_frequencies)):
            of_x, of_y = self.codes(x[block], by, "/x", pause), self.codes(y[block], by, "/y", pause)
            counts[block] = signed_codes.agreeing(of_x, of_y, self.n_frequencies, by)
            exact[block] = self.exact_pairs(x[block], y[block])
        return self._estimate(counts, by, exact)

    def similarity_of_codes(
        self, x: Codes, y: Codes, by: Encoder, gamma: float | None, pause: Pause = no_pause
    ) -> dict[str, Array]:
        """Return the share of codes that agree and, if there is a collision model, the estimate of the kernel."""
        return self._estimate(signed_codes.agreeing(x, y, self.n_frequencies, by, pause), by)

    def similarity_warnings(self, by: Encoder) -> tuple[str, ...]:
        """Return why no collision model relates codes to the kernel; if there is one, what intervals leave out."""
        if (reason := self._explain_missing_law()) is not None:
            return (reason,)
        kernel, sampler = spectral(self.spec)
        doubts = sampler.law_doubts(kernel, self.spec.input_dim)
        if by.rows_per_band > 1 and not sampler.neighbours_are_independent:
            doubts += (
                f"frequencies of sampler {sampler.kind} that follow each other are not independent: bits of one "
                "fingerprint agree less often than the law says, and estimates are up to .05 too small; sampler "
                "monte_carlo and encoding packed have no such bias",
            )
        return doubts

    def _explain_missing_law(self) -> str | None:
        """Return why no collision model relates codes to the kernel; None if there is one."""
        if (why := spectral(self.spec)[1].off_law(self.spec.input_dim)) is not None:
            reason = f"frequencies of sampler {self.spec.sampler.kind} {why}"
        elif self.kernel.profile() is None:
            reason = "signed codes tell the kernel where it is gaussian, laplacian, matern or correlation_rbf"
        else:
            return None
        return f"{reason}: there is the rate of agreement alone, and no estimate"

    @property
    def _sign_law(self) -> SignLaw | None:
        """Collision model of the kernel; None if there is none."""
        profile = self.kernel.profile()
        return None if profile is None or self._explain_missing_law() else signed_codes.sign_law(profile)

    def _estimate(self, counts: Whole, by: Encoder, exact: Matrix | None = None) -> dict[str, Array]:
        """Return the answer for pairs with these counts of agreeing codes, with the exact kernel if it is known."""
        if (law := self._sign_law) is not None:
            return signed_codes.estimate_kernel(counts, self.n_frequencies, by, law, exact)
        rates = {"agreement": counts / (self.n_frequencies // by.rows_per_band)}
        return rates if exact is None else rates | {"exact": exact}

    def check_block(self, rows: Rows, pointer: str, first: int, pause: Pause) -> None:
        """Raise InvalidInput if the kernel is undefined for a row, or if a phase could leave the dtype's range."""
        del pause  # a block takes no longer than a step
        self._in_range(pointer, rows, first)

    def operations(self, rows: Rows) -> int:
        """Return the cost of the projection and of warnings, counted in multiplications of a matrix product."""
        return self._projection.operations(rows) + self.warning_operations(rows)

    def gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Array:
        """Compute inner products of the features, Σ_l z_l(x) z̄_l(y), times signature_l if there is a signature."""
        ready = partial(self._in_range, "/x"), partial(self._in_range, "/y")
        return gram(self._features, (x, y), ready, self.signature, self.threads, pause)

    def gram_operations(self, x: Rows, y: Rows) -> int:
        """Return the cost of `gram`; calls for each block of frequencies, and what is projected again, count too."""
        blocks = -(-self.n_frequencies // self._features.held)
        again = min(blocks, self._projection.slices_per_rotation) - 1
        projected = self.operations(x) + self.operations(y)
        return super().gram_operations(x, y) + again * projected + _OPERATIONS_PER_BLOCK * blocks

    @property
    def gram_row_bytes(self) -> int:
        """Bytes of the features of a row and of the frequencies that `gram` holds at a time."""
        return min(
            super().gram_row_bytes, self._features.held * self._features.per_frequency * self.gram_dtype.itemsize
        )

    def exact_gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Matrix:
        """Compute the exact kernel, (n, m); with `normalize`, k/k(0), which normalised features approximate."""
        gram = super().exact_gram(x, y, pause)
        gram /= self._scale
        return gram

    def exact_pairs(self, x: Rows, y: Rows) -> Matrix:
        """Compute the exact kernel, pair by pair; with `normalize`, k/k(0)."""
        return super().exact_pairs(x, y) / self._scale

    def lag_errors(self, lags: Matrix, pause: Pause = no_pause) -> Matrix:
        """Compute errors of inner products of rows δ with the origin, as in `gram`; for form phase, those of cos_sin.

        The rows are δ itself: the kernel does not prepare them before it compares them.
        """
        self._check_phases(lags)
        rows, origin = lags.astype(self.spec.numpy_dtype), np.zeros((1, lags.shape[1]), self.spec.numpy_dtype)
        features = self._features
        if FORMS[self.spec.form].has_offsets:  # the noise of offsets is no function of δ
            without = self.spec.model_copy(update={"form": Form.cos_sin})
            features = Features(without, self._projection, self._weights, {}, self.threads)
        ready = as_they_are, as_they_are
        estimate = gram(features, (rows, origin), ready, self.signature, self.threads, pause)[:, 0]
        exact = np.empty(len(lags))

        def fill(part: slice) -> None:
            exact[part] = self.kernel.gram(lags[part], origin.astype(np.float64))[:, 0] / self._scale

        for_each(fill, row_blocks(len(lags), _COORDINATES_PER_PART // lags.shape[1]), self.threads, pause)
        return np.abs(estimate - exact)

    def baseline(self, seed: int) -> BaseSpec:
        """Return the spec with as many Monte Carlo frequencies instead, all else the same."""
        changes = {"sampler": MonteCarlo(kind="monte_carlo"), "s": self.n_frequencies, "seed": seed}
        return self.spec.model_copy(update=changes)

    def closed_forms(self, x: Rows, y: Rows, gamma: float | None = None) -> ClosedForms:
        """Return variances of independent frequencies, of control variates and of moment matching."""
        lags = dense(self.compared_exactly(x, "/x")) - dense(self.compared_exactly(y, "/y"))
        return closed_forms(self.spec, self.baseline(0), lags)

    def refusal(self, wanted: Gives, called: str = "this map") -> InvalidInput:
        """Return the error for codes, if weights differ, or for samples."""
        kind = self.spec.kernel.kind
        if wanted is Gives.codes:
            return InvalidInput(f"{called} has {unequal(self.spec)}")
        return InvalidInput(f"{called} has kernel {kind}; samples (i*, t*) come from maps with kernel gmm")

    def spectrum(self, pause: Pause = no_pause) -> Spectrum:
        """Return the frequencies and weights of the map, with the kernel."""
        frequencies = self._projection.frequencies(pause).astype(np.float64)
        weights = self._weights.astype(np.float64)
        if self.spec.normalize:
            weights /= weights.sum()
        return Spectrum(frequencies, weights, self.kernel, self._scale)

    @property
    def _scale(self) -> float:
        """k(0) if features are normalised, else 1."""
        return self.kernel.at_zero(self.spec.input_dim) if self.spec.normalize else 1.0

    def _in_range(self, pointer: str, rows: Rows, first: int) -> Rows:
        """Return the rows as the map compares them; InvalidInput if a phase could leave the range of the dtype."""
        rows = self.prepare_rows(rows, pointer, first)
        self._check_phases(rows)
        return rows

    def _check_phases(self, rows: Rows) -> None:
        """Raise InvalidInput if a phase of prepared rows could leave the range of the dtype."""
        most = float(np.finfo(self.spec.numpy_dtype).max) / 4
        entry, norm = largest(rows), self._projection.largest_norm
        if entry and norm > most / entry:
            raise InvalidInput(
                f"phases leave {self.spec.dtype.value} for {entry:.3g}; expected entries up to {most / norm:.3g}"
            )
