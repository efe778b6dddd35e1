"""A family of maps is one class that derives from `FeatureMap`; its instances are its maps."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Matrix, Rows, in_dtype
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import CodeLaw
from app.core.hashing.encodings import CodeOptions, Codes, Encoder, Encoding, Samples
from app.core.kernels.base import AnyKernel
from app.core.kernels.rounding import Rounding, coarseness_warnings
from app.core.maps.terms import Arrays, BaseSpec, Built, ClosedForms, Fetched, Form, FrozenArray, Gives, Spectrum
from app.core.progress import Pause, no_pause
from app.core.samplers.base import AnySampler

PAIRS = Encoder(Encoding.pairs)
"""Writes codes that tell all samples apart."""


class FeatureMap(ABC):
    """A map, ready for use; its class is its family.

    A family says which specs it accepts, builds named arrays from them, opens such arrays and applies them to rows.
    Results that only some families give the others refuse by name: `transform` is for families that give features,
    `codes`, `samples` and `rbf_pairs` for those that give codes, `spectrum` for those that give
    frequencies.

    Rows are always behind the gate of the spec, in the precision in which they came: a family rounds them to the map's
    dtype for features, codes and Gram blocks, and leaves them as they are for the exact kernel. What takes long has an
    argument `pause`: it is called between steps of at most a quarter of a second. A call uses up to `threads` threads,
    and no result depends on their number.
    """

    gives: ClassVar[frozenset[Gives]]
    """The results that maps of this family may give beside their Gram block; others they refuse."""

    spec: BaseSpec
    usual_encoders: ClassVar[tuple[Encoder, ...]] = ()
    """How codes are written that are posted without a word on how, told apart by the shape of a row.

    By the first of them vectors are compared.
    """
    samplers: ClassVar[tuple[type[AnySampler], ...]]
    """The samplers whose maps this family builds, and no other does."""
    fetched: ClassVar[Mapping[str, Fetched]] = MappingProxyType({})
    """The arrays that clients can fetch of some of its maps, and what each is, for the API's document."""
    parameter_stream: ClassVar[int | None] = None
    """Version of the stream of random parameters that takes the place of arrays; None where there is none."""
    operations_per_comparison: ClassVar[int] = 1
    """Multiplications of a matrix product that take as long as `gram` takes to compare two columns of two rows."""

    arrays: Mapping[str, Array]
    """The arrays that the map gives, by name: those that are frozen, and those of `computed`."""
    computed: Mapping[str, FrozenArray] = MappingProxyType({})
    """Shapes of arrays that are not held: each is computed anew whenever it is asked for."""
    kernel: AnyKernel
    """The kernel, as it compares rows of the map's dtype."""
    n_frequencies: int
    """Number of frequencies after building, or of hashes."""
    n_output: int
    """Columns of a transformed row, or codes of a row."""
    gram_dtype: np.dtype[Any]
    """Dtype of a Gram block; of features too, where the map gives them."""
    largest_feature: float = inf
    """No feature is larger."""
    bytes: int
    """Memory of the opened map."""
    rounds_exact_rows: ClassVar[bool] = True
    """Whether what it computes of rows far from 0 has lost digits even where the dtype holds the rows exactly."""
    form: Form | None = None
    """Form of the features, where there are several."""
    threads: int = 1
    """How many threads a call may use."""
    signature: NDArray[np.int8] | None = None
    """±1 for each frequency, where some weights are negative; else None."""

    @abstractmethod
    def __init__(self, spec: BaseSpec, arrays: Arrays, threads: int = 1) -> None:
        """Open what `build` has frozen for a spec that `check` accepts."""

    # What can be said of a spec, before anything is built.

    @classmethod
    @abstractmethod
    def check(cls, spec: BaseSpec) -> None:
        """Raise InvalidInput, naming the rule and what would work, if the family has no map of such a spec.

        The sampler is one of the family's; the kernel fits `input_dim`.
        """

    @classmethod
    @abstractmethod
    def size_for(cls, sampler: AnySampler, columns: int, input_dim: int) -> int | None:
        """The s that makes the most of so many output columns of the default form; None where a rule dictates it.

        Raises:
            InvalidInput: what the rule dictates takes more columns.
        """

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, columns: int, dataset: str | None) -> tuple[AnySampler, ...]:
        """Samplers that recommendations try within this many columns of the default form; see `AnySampler.suggest`."""
        return tuple(one for kind in cls.samplers for one in kind.suggest(kernel, input_dim, columns, dataset))

    @classmethod
    @abstractmethod
    def frozen(cls, spec: BaseSpec) -> dict[str, FrozenArray]:
        """The arrays that `build` may make, by name, each as large as it can become."""

    @classmethod
    @abstractmethod
    def largest(cls, spec: BaseSpec) -> tuple[int, int]:
        """The most frequencies (hashes, landmarks) and output columns that `build` may make."""

    @classmethod
    def frozen_bytes(cls, spec: BaseSpec) -> int:
        """The most memory that the frozen arrays can take."""
        return sum(array.nbytes for array in cls.frozen(spec).values())

    @classmethod
    @abstractmethod
    def drawing_bytes(cls, spec: BaseSpec) -> int:
        """The most memory that building and opening take, what they make among it."""

    @classmethod
    def building_bytes(cls, spec: BaseSpec) -> int:
        """The most memory that building alone takes, what it makes among it."""
        return cls.drawing_bytes(spec)

    @classmethod
    @abstractmethod
    def build(cls, spec: BaseSpec, building: Building | None = None) -> Built:
        """Make the arrays of a map, whose spec `check` accepts; all randomness comes from the seed of the spec.

        Raises:
            InvalidInput: there is no such map.
        """

    @classmethod
    def derived_arrays(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """Arrays that results are made with beside the frozen ones, for whoever computes them elsewhere; here none.

        Each is computed from the spec and from frozen arrays of a number for each frequency. They are no part of what
        `build` freezes.
        """
        return {}

    # The Gram block, approximate and exact.

    @abstractmethod
    def operations(self, rows: Rows) -> int:
        """Multiplications of a matrix product that take as long as `apply`."""

    @abstractmethod
    def gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Array:
        """The approximate kernel, rows (n, d) and (m, d) to (n, m) in `gram_dtype`.

        Raises:
            InvalidInput: rows at "/x" or "/y" have no kernel, or leave the range of the dtype.
        """

    def gram_operations(self, x: Rows, y: Rows) -> int:
        """Multiplications of a matrix product that take as long as `gram`."""
        compared = self.operations_per_comparison * int(x.shape[0]) * int(y.shape[0]) * self.n_output
        return self.operations(x) + self.operations(y) + compared

    def exact_gram(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Matrix:
        """The kernel itself of the rows as they came, which `gram` approximates, (n, m). Raises as `gram` does."""
        x, y = self.compared_exactly(x, "/x"), self.compared_exactly(y, "/y")
        return self.spec.kernel.exact_in_parts(x, y, self.threads, pause)

    def exact_pairs(self, x: Rows, y: Rows) -> Matrix:
        """The exact kernel of row i of x and row i of y, (n,)."""
        return self.spec.kernel.pairs(self.compared_exactly(x, "/x"), self.compared_exactly(y, "/y"))

    def compared_exactly(self, rows: Rows, pointer: str = "") -> Rows:
        """The rows as the exact kernel compares them, in float64; InvalidInput names those without a kernel."""
        return self.spec.kernel.prepare(in_dtype(rows, np.dtype(np.float64)), pointer)

    def prepare_rows(self, rows: Rows, pointer: str) -> Rows:
        """The rows as the map compares them, in its dtype; InvalidInput names those without a kernel."""
        return self.kernel.prepare(in_dtype(rows, self.spec.numpy_dtype), pointer)

    def estimated_pairs(self, x: Rows, y: Rows, pause: Pause = no_pause) -> Array:
        """The approximate kernel of row i of x and row i of y, (n,), summed up in float64."""
        of_x, of_y = self.transform(x, pause), self.transform(y, pause).conj()
        if self.signature is not None:
            of_x *= np.tile(self.signature, of_x.shape[1] // len(self.signature))
        products: Array = np.einsum("ij,ij->i", of_x, of_y, dtype=np.result_type(of_x, np.float64))
        return products

    def check_rows(self, rows: Rows, pointer: str) -> None:
        """Raise InvalidInput if `transform`, `codes` or `gram` would refuse some of the rows, which stood at `pointer`.

        Rows that pass can be given to these in blocks.
        """
        self.prepare_rows(rows, pointer)

    def warnings(self, rows: Rows, called: str = "vectors") -> tuple[str, ...]:
        """The warning that the dtype is too coarse for features and Gram blocks of these rows, if it is.

        It is a line of ASCII.
        """
        return coarseness_warnings(self._rounding, rows, self.rounds_exact_rows, called)

    @cached_property
    def _rounding(self) -> Rounding | None:
        return self.spec.kernel.rounding(self.spec.numpy_dtype)

    # Results that only some families give: features, codes, frequencies. Here each is refused.

    def refusal(self, wanted: Gives, called: str = "this map") -> InvalidInput:
        """The refusal of what this family does not give; `called` names the map. A family may say what helps."""
        return InvalidInput(f"{called} has sampler {self.spec.sampler.kind}, which gives no {wanted.value}")

    @classmethod
    def capabilities(cls, spec: BaseSpec) -> frozenset[Gives]:
        """What a map of the spec gives of `gives`: all of it, unless a family says which maps lack some."""
        return cls.gives

    @cached_property
    def _given(self) -> frozenset[Gives]:
        return self.capabilities(self.spec)

    def check_gives(self, wanted: Gives, called: str = "this map") -> None:
        """Raise the refusal of what this map does not give."""
        if wanted not in self._given:
            raise self.refusal(wanted, called)

    def apply(self, rows: Rows, pause: Pause = no_pause) -> Array:
        """The features of the rows, or their codes where the map gives no features."""
        return self.transform(rows, pause) if Gives.features in self.gives else self.codes(rows, pause=pause)

    def transform(self, rows: Rows, pause: Pause = no_pause) -> Array:
        """Features of the rows, (n, d) to (n, n_output) in `gram_dtype`.

        Raises:
            InvalidInput: rows have no kernel or leave the range of the dtype, or the family gives no features.
        """
        raise self.refusal(Gives.features)

    def codes(self, rows: Rows, encoder: Encoder = PAIRS, pointer: str = "/vectors", pause: Pause = no_pause) -> Codes:
        """The codes of the rows, one row of codes each, as the encoder writes them.

        Raises:
            InvalidInput: rows have no code and the encoder does not mark them, or the family gives no codes.
        """
        raise self.refusal(Gives.codes)

    def encoder_of(self, options: CodeOptions) -> Encoder:
        """The encoder of these options; InvalidOption for what means nothing to codes of this map."""
        raise self.refusal(Gives.codes)

    def code_law(self, called: str = "this map") -> CodeLaw:
        """What codes that are kept tell of the kernel; InvalidInput, which calls the map so, where they do not."""
        raise self.refusal(Gives.codes, called)

    def similarity(self, x: Rows, y: Rows, by: Encoder, gamma: float | None) -> dict[str, Array]:
        """What codes tell of the kernel of row i of x with row i of y, beside the kernel itself, (n,) each or (n, 2).

        `by` says which codes to compare, and with a gamma an RBF kernel is estimated too, where `gamma_refusal` allows
        it. All rows must have a code.
        """
        raise self.refusal(Gives.codes)

    def similarity_of_codes(self, x: Codes, y: Codes, by: Encoder, gamma: float | None) -> dict[str, Array]:
        """What codes that are written as `by` says tell of the kernel, as `similarity` does."""
        raise self.refusal(Gives.codes)

    def similarity_warnings(self) -> tuple[str, ...]:
        """Why codes of this map tell no kernel, in a line of ASCII, if they do not."""
        return ()

    def find_rows_without_code(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether a row has no code, (n,)."""
        raise self.refusal(Gives.codes)

    def samples(self, rows: Rows, hashes: slice, pause: Pause = no_pause) -> Samples:
        """The samples (i*, t*) that codes are made of, (n, hashes, 2); −1 for a row without one."""
        raise self.refusal(Gives.samples)

    def chances(self, x: Rows, y: Rows, by: Encoder) -> Matrix:
        """How often codes of row i of x and of y, written as `by` does, are equal where their samples differ, (n,)."""
        raise self.refusal(Gives.samples)

    def rbf_pairs(self, x: Rows, y: Rows, gamma: float) -> Matrix:
        """e^(−γ(1 − ρ)) of row i of x with row i of y, ρ their cosine, (n,)."""
        raise self.refusal(Gives.samples)

    def spectrum(self) -> Spectrum:
        """The frequencies and their weights; InvalidInput where the family has none."""
        raise self.refusal(Gives.frequencies)

    # What diagnostics compare with.

    def baseline(self, seed: int) -> BaseSpec | None:
        """The spec of the cheap map that diagnostics compare this one with; None where there is none."""
        return None

    def lag_errors(self, lags: Matrix, pause: Pause = no_pause) -> Matrix:
        """|k(δ) − k̂(δ)| of the differences δ of rows, (n, d) to (n,), where k̂ hangs on these: by the map's own dtype.

        Raises:
            InvalidInput: the family has no frequencies, or they leave the range of the dtype.
        """
        raise self.refusal(Gives.frequencies)

    def anchors(self) -> Rows | None:
        """Rows that stand for those that the map was made from, around which its errors are measured.

        None where none were at hand, or errors hang on the differences of rows alone.
        """
        return None

    @property
    def is_random(self) -> bool:
        """Whether maps of other seeds may differ from this one."""
        return True

    def closed_forms(self, x: Rows, y: Rows, gamma: float | None = None) -> ClosedForms:
        """Variances of the estimate of k(x_i, y_i) over maps of other seeds, for rows (n, d) that have a kernel.

        `gamma` is that of the RBF kernel that is estimated from hashes too, where `gamma_refusal` allows it.
        """
        return ClosedForms(None, {})

    def gamma_refusal(self) -> str | None:
        """Why no RBF kernel is estimated from this map's codes; None where one is."""
        return "gamma is for maps from whose codes an RBF kernel is estimated"
