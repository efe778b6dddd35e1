"""The common base of the families of maps whose codes are weighted minhashes: samples for the min-max kernel."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Matrix, Rows, Whole, dense, in_dtype, row_blocks
from app.core.building import Building
from app.core.errors import InvalidInput, InvalidOption
from app.core.hashing import estimates
from app.core.hashing.code_laws import MinMaxLaw, row_chances
from app.core.hashing.encodings import CodeOptions, Codes, Encoder, Encoding, Samples, encoder
from app.core.hashing.estimates import Agreements, collision_rate, estimate_variances
from app.core.hashing.sampling import Load, SampleSource, check_sampled_rows, count_collisions, entries, refuse_rows
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.maps.base import PAIRS, FeatureMap
from app.core.maps.terms import Arrays, BaseSpec, Built, ClosedForms, Form, FrozenArray, Gives
from app.core.norms import unit_rows
from app.core.progress import Pause, between, no_pause
from app.core.samplers.base import AnySampler
from app.core.threads import for_each

# The most codes, and entries of rows, that are held while pairs of vectors are compared.
_CODES_PER_BLOCK, _ENTRIES_PER_BLOCK = 1 << 20, 1 << 22
STEPS_PER_THREAD = 1 << 20
"""Number of hashes of entries, or of comparisons, up to which a second thread does not pay."""
# Steps that one thread does at a time, a tenth of a second or less.
_STEPS_PER_PART = 1 << 24


def _estimates(counts: Whole, chance: Matrix, s: int, gamma: float | None) -> dict[str, Array]:
    """Return estimates and standard errors, from how many of s codes agree and how often codes agree by chance."""
    estimate = estimates.kernel_estimate(counts / s, s, chance)
    answer: dict[str, Array] = {"estimate": estimate.value, "standard_error": estimate.standard_error}
    if gamma is not None:
        rbf = estimates.rbf_estimate(estimate, gamma)
        answer |= {"rbf_estimate": rbf.value, "rbf_standard_error": rbf.standard_error}
    return answer


class WeightedMinHashMap(FeatureMap):
    """Map of samples (i*, t*) of rows: for each hash, two rows agree with probability exactly their min-max kernel.

    Nothing is stored: the random parameters are a versioned function of seed, coordinate and hash. Rows and centre are
    first rounded to the map's dtype; all arithmetic is then in float64, and in an order that does not depend on the
    number of threads.
    """

    gives = frozenset({Gives.codes, Gives.samples})
    unit = "hashes"
    usual_encoders = (PAIRS, Encoder(Encoding.zero_bit))
    operations_per_comparison = 16
    gram_dtype = np.dtype(np.float64)
    kernel: GeneralizedMinMax
    samples_at_once: ClassVar[int]
    """Number of samples held at a time while codes of two sets of rows are compared."""
    arrives_first: ClassVar[bool]
    """Whether two samples that differ are independent, as they are if each is the first arrival in its row."""

    def __init__(self, spec: BaseSpec, arrays: Arrays | None = None, threads: int = 1) -> None:
        self.spec = spec
        kernel, self.n_output = kernel_and_size(spec)
        self.kernel = kernel.round_center(spec.numpy_dtype)
        self.n_frequencies = self.n_output
        self.arrays = arrays or {}
        self.threads = threads
        self._source = self.source(spec, threads)
        self.bytes = self._source.nbytes

    @classmethod
    @abstractmethod
    def source(cls, spec: BaseSpec, threads: int) -> SampleSource:
        """Return the source of the samples of a spec that `check` accepts."""

    @classmethod
    def check(cls, spec: BaseSpec) -> None:
        """Raise InvalidInput for kernels other than gmm, a missing s, a centre beyond the dtype, or feature options."""
        kernel, _ = kernel_and_size(spec)
        kernel.round_center(spec.numpy_dtype)
        if spec.form is not Form.cos_sin or spec.normalize:
            raise InvalidInput(
                "kernel gmm gives codes, not features: leave out form and normalize",
                "/normalize" if spec.normalize else "/form",
            )

    @classmethod
    def size_for(cls, sampler: AnySampler, columns: int, input_dim: int) -> int:
        """Return as many hashes as columns."""
        return columns

    @classmethod
    def frozen(cls, spec: BaseSpec) -> dict[str, FrozenArray]:
        """Return no arrays, as nothing is stored."""
        return {}

    @classmethod
    def largest(cls, spec: BaseSpec) -> tuple[int, int]:
        """Return the numbers of hashes and of codes, which are equal."""
        _, s = kernel_and_size(spec)
        return s, s

    @classmethod
    def building_bytes(cls, spec: BaseSpec) -> int:
        """Return 0: memory is taken only when the map is opened."""
        return 0

    @classmethod
    def build(cls, spec: BaseSpec, building: Building | None = None) -> Built:
        """Return no arrays, as there is nothing to draw."""
        _, s = kernel_and_size(spec)
        return Built({}, s, s, ())

    @classmethod
    def derived_arrays(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """Return the `center` (d,), rounded to the map's dtype as rows are, if the kernel has one."""
        center = kernel_and_size(spec)[0].round_center(spec.numpy_dtype).center
        return {} if center is None else {"center": np.array(center)}

    def codes(self, rows: Rows, encoder: Encoder = PAIRS, pointer: str = "/vectors", pause: Pause = no_pause) -> Codes:
        """Encode the samples of the rows; InvalidInput if some rows are all zero and the encoder does not mark them."""
        shape, dtype = encoder.row(self.n_output, self.spec.input_dim)
        codes = np.empty((rows.shape[0], *shape), dtype)
        unsampled = np.zeros(rows.shape[0], np.bool_)

        def write(block: slice, samples: Samples) -> None:
            codes[block] = encoder.encode(samples)
            np.less(samples[:, 0, 0], 0, out=unsampled[block])

        self._use_blocks(rows, slice(0, self.n_output), write, pause)
        if encoder.marked:
            codes[unsampled] = -1
        else:
            refuse_rows(np.flatnonzero(unsampled), pointer)
        return codes

    def check_rows(self, rows: Rows, pointer: str, pause: Pause = no_pause) -> None:
        """Raise InvalidInput naming the rows that are all zero (after centering), if there are any."""
        refuse_rows(np.flatnonzero(self.find_rows_without_code(rows, pause)), pointer)

    def find_rows_without_code(self, rows: Rows, pause: Pause = no_pause) -> NDArray[np.bool_]:
        """Return whether each row is all zero (after centering), (n,)."""
        empty = np.empty(rows.shape[0], np.bool_)
        for block in between(self._blocks(rows), pause):
            empty[block] = self.kernel.empty(in_dtype(rows[block], self.spec.numpy_dtype))
        return empty

    def gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Matrix:
        """Compute the collision rate of (i*, t*), which estimates the kernel unbiasedly; InvalidInput for zero rows."""
        equal = np.zeros((x.shape[0], y.shape[0]), np.int64)
        for hashes in row_blocks(self.n_output, self.samples_at_once // max(1, sum(equal.shape))):
            x_samples = self.samples(x, hashes, pause)
            y_samples = x_samples if y is x else self.samples(y, hashes, pause)
            check_sampled_rows(x_samples, "/x")
            check_sampled_rows(y_samples, "/y")

            def count(part: slice, x_samples: Samples = x_samples, y_samples: Samples = y_samples) -> None:
                count_collisions(x_samples[part], y_samples, equal[part])

            self._in_parts(count, len(equal), equal.size * x_samples.shape[1], pause)
        return equal / self.n_output

    def agreements(self, x: Rows, y: Rows, by: Encoder, pause: Pause = no_pause) -> Agreements:
        """Count the codes, written by `by`, that agree in row i of x and row i of y; all rows must have a sample."""
        counts = Agreements.none(x.shape[0])
        for hashes in row_blocks(self.n_output, self.samples_at_once // max(1, 2 * x.shape[0])):
            counts.add(by, self.samples(x, hashes, pause), self.samples(y, hashes, pause), hashes.start)
        return counts

    def chances(self, x: Rows, y: Rows, by: Encoder) -> Matrix:
        """Return how often codes of different samples are equal, see `row_chances`; all rows must have a sample."""
        return row_chances(by, self.kernel, x, y, self.arrives_first)

    def encoder_of(self, options: CodeOptions) -> Encoder:
        """Return the encoder of these options; zero_bit if they name no encoding."""
        if options.rows_per_band is not None:
            raise InvalidOption("rows_per_band is for fingerprints of Fourier maps", "rows_per_band")
        return encoder(options.encoding or Encoding.zero_bit, options.bits, options.bits_of, options.marked)

    def code_law(self, called: str = "this map") -> MinMaxLaw:
        """Return the collision model of samples."""
        return MinMaxLaw(self.n_output)

    def similarity(
        self, x: Rows, y: Rows, by: Encoder, gamma: float | None, pause: Pause = no_pause
    ) -> dict[str, Array]:
        """Return estimates from codes, and the exact kernel.

        As the rows are known, so is the bias of the estimates: it is returned too, and intervals are corrected for it.
        """
        x, y = self.kernel.in_one_form(x, y)
        # Packed codes are compared unpacked, one by one.
        compared = by._replace(encoding=Encoding.b_bit) if by.encoding is Encoding.packed else by
        n, s = x.shape[0], self.n_output
        agree = estimates.Agreements.none(n)
        exact, true_chance, rbf = np.empty(n), np.empty(n), np.empty(n)
        by_entries = _ENTRIES_PER_BLOCK * n // max(1, self._n_entries(x) + self._n_entries(y))
        for block in row_blocks(n, min(_CODES_PER_BLOCK // s, by_entries)):
            for counted, more in zip(agree, self.agreements(x[block], y[block], compared, pause), strict=True):
                counted[block] = more
            exact[block] = self.exact_pairs(x[block], y[block])
            true_chance[block] = self.chances(x[block], y[block], compared)
            if gamma is not None:
                rbf[block] = self.rbf_pairs(x[block], y[block], gamma)
        chance = estimates.chances(compared, self.spec.input_dim, s, agree.odd_x, agree.odd_y)
        bias = estimates.kernel_bias(exact, chance, true_chance)
        answer = _estimates(agree.codes, chance, s, gamma) | {"exact": exact, "zero_bit": agree.zero_bit / s}
        interval = estimates.kernel_interval(agree.codes, s, chance, bias)
        if gamma is None:
            return answer | {"bias": bias, "interval": interval}
        link_bias = estimates.rbf_bias(exact, bias, rbf, gamma)
        of_mean = estimates.kernel_interval(agree.codes, s, chance)
        of_rbf = {"rbf_bias": link_bias, "rbf_interval": estimates.rbf_interval(of_mean, link_bias, gamma)}
        return answer | {"rbf_exact": rbf, "bias": bias, "interval": interval} | of_rbf

    def similarity_of_codes(
        self, x: Codes, y: Codes, by: Encoder, gamma: float | None, pause: Pause = no_pause
    ) -> dict[str, Array]:
        """Return estimates from codes that `by` has written."""
        s, n = self.n_output, len(x)
        counts, odd_x, odd_y = np.empty((3, n), np.int64)
        for block in row_blocks(n, _CODES_PER_BLOCK // s):
            pause()
            codes = [by.unpack(of[block], s) if by.encoding is Encoding.packed else of[block] for of in (x, y)]
            counts[block] = estimates.collisions(*codes)
            odd_x[block], odd_y[block] = (estimates.odd_codes(by, of) for of in codes)
        chance = estimates.chances(by, self.spec.input_dim, s, odd_x, odd_y)
        return _estimates(counts, chance, s, gamma) | {"interval": estimates.kernel_interval(counts, s, chance)}

    def exact_gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Matrix:
        """Compute the exact min-max kernel of the unrounded rows; InvalidInput if rows round to all zero."""
        self.check_rows(x, "/x")
        if y is not x:
            self.check_rows(y, "/y")
        return self.spec.kernel.exact_in_parts(x, y, self.threads, pause)

    def estimated_pairs(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Array:
        """Compute the collision rate of (i*, t*) of row i of x and row i of y."""
        return collision_rate(self.codes(x, pointer="/x", pause=pause), self.codes(y, pointer="/y", pause=pause))

    def refusal(self, wanted: Gives, called: str = "this map") -> InvalidInput:
        """Return the error for features, or for frequencies."""
        if wanted is Gives.features:
            return InvalidInput(f"{called} has kernel gmm, which gives codes, not features: POST to /codes")
        return InvalidInput("kernel gmm has no frequencies; collisions and gram are its diagnostics")

    def gamma_refusal(self) -> str | None:
        """Return why no RBF kernel is estimated; None if the kernel has power 1."""
        if self.kernel.p == 1:
            return None
        return f"gamma is for the min-max kernel of power 1; this map has {self.kernel.p}"

    def closed_forms(self, x: Rows, y: Rows, gamma: float | None = None) -> ClosedForms:
        """Return the variance `gcws`, which all weighted minhashes have, and `rbf_from_gcws` if there is a gamma."""
        return ClosedForms("gcws", estimate_variances(self.exact_pairs(x, y), self.n_output, gamma))

    def rbf_pairs(self, x: Rows, y: Rows, gamma: float) -> Matrix:
        """Compute e^(−γ(1 − ρ)) of row i of x and row i of y, where ρ is the cosine of the centred rows, (n,)."""
        kernel, _ = kernel_and_size(self.spec)
        units = [
            unit_rows(rows.astype(np.float64) if kernel.stays_sparse(rows) else kernel.subtract_center(dense(rows)))
            for rows in (x, y)
        ]
        cosines = np.asarray((units[0] * units[1]).sum(axis=1), np.float64)
        # Rounding may take a cosine past 1, and a large γ would magnify that.
        return np.exp(gamma * np.minimum(cosines - 1, 0))

    def operations(self, rows: Rows) -> int:
        """Return the cost of sampling the rows, counted in multiplications of a matrix product."""
        n_entries, n_blocks = self._n_entries(rows), sum(1 for _ in self._blocks(rows, self.n_output))
        n_coordinates = min(n_entries, 2 * self.spec.input_dim * n_blocks)
        return self._source.operations(Load(rows.shape[0], n_entries, n_coordinates), self.n_output)

    def _in_parts(self, work: Callable[[slice], None], n: int, steps: int, pause: Pause) -> None:
        """Do `work` of `steps` steps on n rows, in parts split among the threads."""
        threads = self.threads if steps > STEPS_PER_THREAD else 1
        for_each(work, row_blocks(n, min(-(-n // threads), n * _STEPS_PER_PART // max(1, steps))), threads, pause)

    def samples(self, rows: Rows, hashes: slice, pause: Pause = no_pause) -> Samples:
        """Compute the samples (i*, t*) of the rows, (n, hashes, 2); −1 for a row without a sample."""
        samples = np.empty((rows.shape[0], hashes.stop - hashes.start, 2), np.int64)
        self._use_blocks(rows, hashes, samples.__setitem__, pause)
        return samples

    def _use_blocks(self, rows: Rows, hashes: slice, use: Callable[[slice, Samples], None], pause: Pause) -> None:
        """Call `use` with every block of rows and its samples (rows, hashes, 2), −1 for a row without a sample."""
        n_hashes = self._source.sampled_with(hashes)
        threads = self._source.blocks_at_once if self._n_entries(rows) * n_hashes > STEPS_PER_THREAD else 1

        def work(block: slice) -> None:
            found = entries(in_dtype(rows[block], self.spec.numpy_dtype), self.kernel)
            use(block, self._source.samples(found, block.stop - block.start, hashes, pause))

        for_each(work, self._blocks(rows, n_hashes, threads), threads, pause)

    def _blocks(self, rows: Rows, n_hashes: int = 1, threads: int = 1) -> Iterator[slice]:
        """Split rows into blocks with bounded memory for entries and samples, one or more for each thread."""
        n, source = rows.shape[0], self._source
        by_entries = source.entries_per_block * n // max(1, self._n_entries(rows))
        return row_blocks(n, min(by_entries, source.samples_per_block // n_hashes, -(-n // threads)))

    def _n_entries(self, rows: Rows) -> int:
        return int(rows.size if self.kernel.stays_sparse(rows) else prod(rows.shape))


def kernel_and_size(spec: BaseSpec) -> tuple[GeneralizedMinMax, int]:
    """Return the kernel and the number of hashes of a spec; InvalidInput if it is not gmm, or s is missing."""
    kernel = spec.kernel
    if not isinstance(kernel, GeneralizedMinMax):
        raise InvalidInput(
            f"sampler {spec.sampler.kind} is for kernel gmm; {kernel.kind} takes, for instance, {kernel.served_by}",
            "/sampler/kind",
        )
    if spec.s is None:
        raise InvalidInput("s is missing; it is the number of hashes", "/s")
    return kernel, spec.s
