"""The base class of maps: a family of maps is a class that derives from `FeatureMap`; its instances are the maps."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Matrix, Rows, blocks_of_entries, in_dtype
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import CodeLaw
from app.core.hashing.encodings import CodeOptions, Codes, Encoder, Encoding, Samples
from app.core.kernels.base import AnyKernel
from app.core.kernels.rounding import Rounding, coarseness_warnings
from app.core.maps.terms import Arrays, BaseSpec, Built, ClosedForms, Fetched, Form, FrozenArray, Gives, Spectrum, Unit
from app.core.progress import Pause, between, no_pause
from app.core.samplers.base import AnySampler

PAIRS = Encoder(Encoding.pairs)
"""Encoder that keeps each sample whole, so that different samples have different codes."""


OPERATIONS_PER_NUMBER = 160
"""Multiplications that take as long as one number of a row, such as a cosine or a code, beside the products for it."""
# Entries of rows that are checked at a time.
_ENTRIES_PER_BLOCK = 1 << 20


class FeatureMap(ABC):
    """A map, ready for use; its class is its family.

    A family says which specs it accepts, builds named arrays from them, opens such arrays and applies them to rows.
    Some results are given by some families only: `transform` is for families that give features, `codes`, `samples` and
    `rbf_pairs` for families that give codes, `spectrum` for families that give frequencies. In all other families these
    methods raise InvalidInput, which names the missing result.

    Rows have always passed `BaseSpec.gate`, and have the precision that it returns: a family rounds them to the map's
    dtype for features, codes and Gram blocks, and leaves them unrounded for the exact kernel. Long computations take an
    argument `pause`, which is called between steps of at most a quarter of a second. A call uses up to `threads`
    threads, and no result depends on their number.
    """

    gives: ClassVar[frozenset[Gives]]
    """Results that maps of this family may give besides their Gram block; they refuse all other results."""

    unit: ClassVar[Unit]
    """What `s` is the number of."""

    spec: BaseSpec
    usual_encoders: ClassVar[tuple[Encoder, ...]] = ()
    """Encoders assumed for posted codes if the request names no encoding; the shape of a row decides between them.

    Vectors are compared by codes of the first encoder.
    """
    samplers: ClassVar[tuple[type[AnySampler], ...]]
    """Samplers whose maps this family builds, and no other family."""
    fetched: ClassVar[Mapping[str, Fetched]] = MappingProxyType({})
    """Arrays that clients can fetch from some of its maps, by name, with a description for the API's document."""
    parameter_stream: ClassVar[int | None] = None
    """Version of the stream of random parameters that replaces stored arrays; None if the family has no stream."""
    operations_per_code: ClassVar[int] = OPERATIONS_PER_NUMBER
    """Cost of a code beside `operations`, counted in multiplications of a matrix product."""
    operations_per_comparison: ClassVar[int] = 1
    """Cost of comparing one column of two rows in `gram`, counted in multiplications of a matrix product."""

    arrays: Mapping[str, Array]
    """Arrays of the map by name: the frozen ones, and those of `computed`."""
    computed: Mapping[str, FrozenArray] = MappingProxyType({})
    """Shapes of arrays that are not held in memory: each is computed again at every access."""
    kernel: AnyKernel
    """Kernel of the map, as it compares rows rounded to the map's dtype."""
    n_frequencies: int
    """Number of frequencies (hashes, landmarks) after building."""
    n_output: int
    """Number of columns of a transformed row, or of codes of a row."""
    gram_dtype: np.dtype[Any]
    """Dtype of a Gram block, and of the features if the map gives features."""
    largest_feature: float = inf
    """Upper bound of the absolute value of a feature."""
    bytes: int
    """Memory of the opened map, in bytes."""
    rounds_exact_rows: ClassVar[bool] = True
    """Whether results for rows far from 0 lose digits even if the dtype holds the rows exactly."""
    form: Form | None = None
    """Form of the features, in families with several forms; else None."""
    threads: int = 1
    """Maximum number of threads of a call."""
    signature: NDArray[np.int8] | None = None
    """Sign of the weight of each frequency, ±1, if some weights are negative; else None."""

    @abstractmethod
    def __init__(self, spec: BaseSpec, arrays: Arrays, threads: int = 1) -> None:
        """Open the arrays that `build` has frozen for a spec that `check` accepts."""

    # What a spec alone determines, before anything is built.

    @classmethod
    @abstractmethod
    def check(cls, spec: BaseSpec) -> None:
        """Raise InvalidInput, naming the rule and what would work, if the family has no map of such a spec.

        The caller has checked that the sampler is one of the family's, and that the kernel fits `input_dim`.
        """

    @classmethod
    @abstractmethod
    def size_for(cls, sampler: AnySampler, columns: int, input_dim: int) -> int | None:
        """Return the s that makes best use of `columns` output columns of the default form; None if a rule dictates s.

        Raises:
            InvalidInput: the s that the rule dictates takes more columns.
        """

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, columns: int, dataset: str | None) -> tuple[AnySampler, ...]:
        """Return samplers that recommendations try for `columns` columns of the default form; see `AnySampler`."""
        return tuple(one for kind in cls.samplers for one in kind.suggest(kernel, input_dim, columns, dataset))

    @classmethod
    @abstractmethod
    def frozen(cls, spec: BaseSpec) -> dict[str, FrozenArray]:
        """Return the arrays that `build` may make, by name, each with its largest possible shape."""

    @classmethod
    @abstractmethod
    def largest(cls, spec: BaseSpec) -> tuple[int, int]:
        """Return the largest numbers of frequencies (hashes, landmarks) and output columns that `build` may make."""

    @classmethod
    def frozen_bytes(cls, spec: BaseSpec) -> int:
        """Return the most memory that the frozen arrays can take."""
        return sum(array.nbytes for array in cls.frozen(spec).values())

    @classmethod
    @abstractmethod
    def drawing_bytes(cls, spec: BaseSpec) -> int:
        """Return the most memory that building and opening a map take, including the map itself."""

    @classmethod
    def building_bytes(cls, spec: BaseSpec) -> int:
        """Return the most memory that building alone takes, including the arrays that it makes."""
        return cls.drawing_bytes(spec)

    @classmethod
    @abstractmethod
    def build(cls, spec: BaseSpec, building: Building | None = None) -> Built:
        """Build the arrays of a map whose spec `check` accepts; all randomness comes from the seed of the spec.

        Raises:
            InvalidInput: no such map can be built.
        """

    @classmethod
    def derived_arrays(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """Return arrays besides the frozen ones that results are computed with, for exports; by default none.

        Each array is computed from the spec and from those frozen arrays that have one number for each frequency.
        `build` does not freeze it.
        """
        return {}

    # The Gram block, approximate and exact.

    @abstractmethod
    def operations(self, rows: Rows) -> int:
        """Return the cost of `apply`, counted in multiplications of a matrix product."""

    def code_operations(self, rows: Rows) -> int:
        """Return the cost of `codes`, counted in multiplications of a matrix product."""
        return self.operations(rows) + self.operations_per_code * int(rows.shape[0]) * self.n_frequencies

    @abstractmethod
    def gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Array:
        """Compute the approximate kernel of rows (n, d) and (m, d), (n, m) in `gram_dtype`.

        Raises:
            InvalidInput: the kernel is undefined for rows at "/x" or "/y", or they leave the range of the dtype.
        """

    def gram_operations(self, x: Rows, y: Rows) -> int:
        """Return the cost of `gram`, counted in multiplications of a matrix product."""
        n, m = int(x.shape[0]), int(y.shape[0])
        numbers = OPERATIONS_PER_NUMBER * (n + m) + self.operations_per_comparison * n * m
        return self.operations(x) + self.operations(y) + numbers * self.n_output

    @property
    def gram_row_bytes(self) -> int:
        """Bytes of the features or codes of a row that `gram` holds at a time."""
        return self.n_output * self.gram_dtype.itemsize

    def exact_gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Matrix:
        """Compute the exact kernel of the unrounded rows, (n, m), which `gram` approximates. Raises as `gram` does."""
        x, y = self.compared_exactly(x, "/x"), self.compared_exactly(y, "/y")
        return self.spec.kernel.exact_in_parts(x, y, self.threads, pause)

    def exact_pairs(self, x: Rows, y: Rows) -> Matrix:
        """Compute the exact kernel of row i of x and row i of y, (n,)."""
        return self.spec.kernel.pairs(self.compared_exactly(x, "/x"), self.compared_exactly(y, "/y"))

    def compared_exactly(self, rows: Rows, pointer: str = "", first: int = 0) -> Rows:
        """Return rows as the exact kernel compares them, in float64; the first of them is row `first` of the request.

        InvalidInput names the rows for which the kernel is undefined.
        """
        return self.spec.kernel.prepare(in_dtype(rows, np.dtype(np.float64)), pointer, first)

    def prepare_rows(self, rows: Rows, pointer: str, first: int = 0) -> Rows:
        """Return rows as the map compares them, in its dtype; the first of them is row `first` of the request.

        InvalidInput names the rows for which the kernel is undefined.
        """
        return self.kernel.prepare(in_dtype(rows, self.spec.numpy_dtype), pointer, first)

    def estimated_pairs(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Array:
        """Compute the approximate kernel of row i of x and row i of y, (n,), summed in float64."""
        of_x, of_y = self.transform(x, pause), self.transform(y, pause).conj()
        if self.signature is not None:
            of_x *= np.tile(self.signature, of_x.shape[1] // len(self.signature))
        products: Array = np.einsum("ij,ij->i", of_x, of_y, dtype=np.result_type(of_x, np.float64))
        return products

    def check_rows(self, rows: Rows, pointer: str, pause: Pause = no_pause) -> None:
        """Raise InvalidInput if `transform`, `codes` or `gram` would refuse some of the rows, posted at `pointer`.

        Rows that pass can be given to these methods in blocks.
        """
        for block in between(blocks_of_entries(rows, _ENTRIES_PER_BLOCK), pause):
            self.check_block(rows[block], pointer, block.start, pause)

    def check_block(self, rows: Rows, pointer: str, first: int, pause: Pause) -> None:
        """Check a block of the rows, from row `first` on, as `check_rows` does."""
        del pause  # a block takes no longer than a step
        self.prepare_rows(rows, pointer, first)

    def warnings(self, rows: Rows, called: str = "vectors") -> tuple[str, ...]:
        """Return a warning if the dtype is too coarse for features and Gram blocks of these rows.

        The warning is one line of ASCII, and calls the rows `called`.
        """
        return coarseness_warnings(self._rounding, rows, self.rounds_exact_rows, called)

    def warning_operations(self, rows: Rows) -> int:
        """Return the cost of `warnings`, counted in multiplications of a matrix product; 0 if features cost more."""
        return 0 if self._rounding is None else self._rounding.operations(rows)

    @cached_property
    def _rounding(self) -> Rounding | None:
        return self.spec.kernel.rounding(self.spec.numpy_dtype)

    # Results that only some families give: features, codes, frequencies. By default each is refused.

    def refusal(self, wanted: Gives, called: str = "this map") -> InvalidInput:
        """Return the error for a result that this map does not give; it calls the map `called`, and may add advice."""
        return InvalidInput(f"{called} has sampler {self.spec.sampler.kind}, which gives no {wanted.value}")

    @classmethod
    def capabilities(cls, spec: BaseSpec) -> frozenset[Gives]:
        """Return which of the results in `gives` a map of the spec gives: all, unless a family overrides this."""
        return cls.gives

    @cached_property
    def _given(self) -> frozenset[Gives]:
        return self.capabilities(self.spec)

    def check_gives(self, wanted: Gives, called: str = "this map") -> None:
        """Raise the error of `refusal` if this map does not give the result."""
        if wanted not in self._given:
            raise self.refusal(wanted, called)

    def apply(self, rows: Rows, pause: Pause = no_pause) -> Array:
        """Compute the features of the rows, or their codes if the map gives no features."""
        return self.transform(rows, pause) if Gives.features in self.gives else self.codes(rows, pause=pause)

    def transform(self, rows: Rows, pause: Pause = no_pause) -> Array:
        """Compute the features of the rows, (n, d) to (n, n_output) in `gram_dtype`.

        Raises:
            InvalidInput: the kernel is undefined for rows, they leave the range of the dtype, or the family gives no
                features.
        """
        raise self.refusal(Gives.features)

    def codes(self, rows: Rows, encoder: Encoder = PAIRS, pointer: str = "/vectors", pause: Pause = no_pause) -> Codes:
        """Compute the codes of the rows, one row of codes for each row, as the encoder writes them.

        Raises:
            InvalidInput: rows have no code and the encoder does not mark them, or the family gives no codes.
        """
        raise self.refusal(Gives.codes)

    def encoder_of(self, options: CodeOptions) -> Encoder:
        """Return the encoder of these options; InvalidOption if an option has no meaning for codes of this map."""
        raise self.refusal(Gives.codes)

    def code_law(self, called: str = "this map") -> CodeLaw:
        """Return the collision model of stored codes: how often they agree, depending on the kernel.

        InvalidInput, which calls the map `called`, if codes of this map do not determine the kernel.
        """
        raise self.refusal(Gives.codes, called)

    def similarity(
        self, x: Rows, y: Rows, by: Encoder, gamma: float | None, pause: Pause = no_pause
    ) -> dict[str, Array]:
        """Return estimates of the kernel of row i of x and row i of y from codes, and the exact kernel.

        Each array is (n,), or (n, 2) for intervals. `by` says which codes to compare. With a `gamma`, an RBF kernel is
        estimated too, if `gamma_refusal` allows it. All rows must have a code.
        """
        raise self.refusal(Gives.codes)

    def similarity_of_codes(
        self, x: Codes, y: Codes, by: Encoder, gamma: float | None, pause: Pause = no_pause
    ) -> dict[str, Array]:
        """Return estimates of the kernel from codes that `by` has written; see `similarity`."""
        raise self.refusal(Gives.codes)

    def similarity_warnings(self, by: Encoder) -> tuple[str, ...]:
        """Return why codes of this map do not tell the kernel, or what an interval leaves out; each a line of ASCII."""
        return ()

    def find_rows_without_code(self, rows: Rows) -> NDArray[np.bool_]:
        """Return whether each row has no code, (n,)."""
        return np.zeros(rows.shape[0], np.bool_)

    def samples(self, rows: Rows, hashes: slice, pause: Pause = no_pause) -> Samples:
        """Compute the samples (i*, t*) that codes are made from, (n, hashes, 2); −1 for a row without a sample."""
        raise self.refusal(Gives.samples)

    def chances(self, x: Rows, y: Rows, by: Encoder) -> Matrix:
        """Return how often codes of row i of x and of y, written by `by`, are equal if their samples differ, (n,)."""
        raise self.refusal(Gives.samples)

    def rbf_pairs(self, x: Rows, y: Rows, gamma: float) -> Matrix:
        """Compute e^(−γ(1 − ρ)) of row i of x and row i of y, where ρ is their cosine, (n,)."""
        raise self.refusal(Gives.samples)

    def spectrum(self, pause: Pause = no_pause) -> Spectrum:
        """Return the frequencies and their weights; InvalidInput if the family has no frequencies."""
        raise self.refusal(Gives.frequencies)

    # What diagnostics compare a map with.

    def baseline(self, seed: int) -> BaseSpec | None:
        """Return the spec of the cheap map that diagnostics compare this map with; None if there is no such map."""
        return None

    def lag_errors(self, lags: Matrix, pause: Pause = no_pause) -> Matrix:
        """Compute |k(δ) − k̂(δ)| for differences δ of rows, (n, d) to (n,), if k̂ depends on differences only.

        k̂ is computed in the map's dtype.

        Raises:
            InvalidInput: the family has no frequencies, or phases of the differences leave the range of the dtype.
        """
        raise self.refusal(Gives.frequencies)

    def anchors(self) -> Rows | None:
        """Return rows that represent the rows the map was built from; its errors are measured around them.

        None if the map was built without rows, or if its errors depend on differences of rows only.
        """
        return None

    @property
    def is_random(self) -> bool:
        """Whether maps of other seeds may differ from this one."""
        return True

    def closed_forms(self, x: Rows, y: Rows, gamma: float | None = None) -> ClosedForms:
        """Return variances of the estimate of k(x_i, y_i) over maps of other seeds, for rows (n, d).

        The kernel must be defined for all rows. `gamma` belongs to the RBF kernel that is also estimated from hashes,
        if `gamma_refusal` allows it.
        """
        return ClosedForms(None, {})

    def gamma_refusal(self) -> str | None:
        """Return why no RBF kernel is estimated from this map's codes; None if it is estimated."""
        return "gamma is for maps from whose codes an RBF kernel is estimated"
