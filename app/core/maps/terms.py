"""Types that all families of maps share: the fields of a spec, frozen arrays, results besides features and codes."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from math import prod
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.core.arrays import (
    AFTER_INPUT,
    MAX_DIM,
    Array,
    CheckBytes,
    Matrix,
    PostedRows,
    RowBlocks,
    Rows,
    check_range,
    floats,
    made_dense,
    stored_values,
    vectors,
)
from app.core.input import Input
from app.core.kernels.base import AnyKernel, ShiftInvariantKernel
from app.core.model import Frozen
from app.core.samplers.base import AnySampler

Arrays = dict[str, NDArray[Any]]
"""Frozen arrays of a map by name. Once they are built, they define the map, and not its spec."""


class ArraysOnDemand(Mapping[str, NDArray[Any]]):
    """Arrays by name: some are held in memory, and some are computed again at each access."""

    def __init__(self, held: Arrays, computed: Mapping[str, Callable[[], NDArray[Any]]]) -> None:
        self._held, self._computed = held, computed

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._computed[name]() if name in self._computed else self._held[name]

    def __contains__(self, name: object) -> bool:
        return name in self._held or name in self._computed  # the method of Mapping would compute the array

    def __iter__(self) -> Iterator[str]:
        return iter([*self._held, *self._computed])

    def __len__(self) -> int:
        return len(self._held) + len(self._computed)


class Dtype(StrEnum):
    """Precision of a map: rows are rounded to it, arrays are stored in it, features are computed and returned in it."""

    float32 = "float32"
    float64 = "float64"


class Form(StrEnum):
    """How frequencies become output columns."""

    complex = "complex"
    cos_sin = "cos_sin"
    phase = "phase"


class BaseSpec(Frozen):
    """Fields of a spec. `MapSpec` lists the kernels and samplers that exist, and checks their combination."""

    input_dim: Annotated[int, Field(ge=1, le=MAX_DIM)]
    """Length d of a vector."""
    kernel: AnyKernel
    sampler: AnySampler
    s: Annotated[int, Field(ge=1, le=1 << 24)] | None = None
    """Number of frequencies, landmarks or hashes; not needed for samplers that determine it themselves."""
    seed: Annotated[int, Field(ge=0, lt=1 << 64)] = 0
    """Seed of all random choices. Maps with the same seed share these choices, so their errors are correlated."""
    form: Annotated[Form, Field(strict=False)] = Form.cos_sin
    """Form of the features; maps of hashes have none."""
    normalize: bool = False
    """Whether to scale each feature row to unit L2 norm."""
    dtype: Annotated[Dtype, Field(strict=False)] = Dtype.float32
    """Dtype of frozen arrays and features."""
    # Left out if there is no input, so that the text of such a spec stays as it was before inputs existed.
    input: Annotated[Input | None, Field(exclude_if=lambda value: value is None)] = None
    """Preprocessing of each row before anything else."""

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the map."""
        return np.dtype(self.dtype.value)

    def gate(self, rows: PostedRows, pointer: str, check: CheckBytes = lambda _: None) -> Rows:
        """Return rows posted at `pointer` of the request, checked and after preprocessing (`input`).

        They keep their precision without an input, and are float64 after an input. They are dense if the kernel has a
        centre, which makes them dense anyway. InvalidInput if they are not rows of this map, TooLarge if `check`
        refuses their size, before an input, or that of the longest one as the sampler looks at it; see `vectors`.
        """
        if self.input is None:
            found = vectors(rows, self.input_dim, self.numpy_dtype, pointer, check=check)
        else:
            given = floats(rows, self.input_dim, np.dtype(np.float64), pointer, check)
            # They count as they came, so that all rows of a dataset fit, and one row with the copies to scale it.
            check(max(stored_values(given).nbytes, 16 * self.input_dim if isinstance(given, np.ndarray) else 0))
            found = self.input.apply(given, pointer)
            check_range(found, self.numpy_dtype, pointer, AFTER_INPUT)
        if self.kernel.is_centered and not isinstance(found, np.ndarray):
            check(prod(found.shape) * found.dtype.itemsize)
            found = made_dense(found)
        if bytes_per_entry := self.sampler.bytes_per_entry:
            longest = self.input_dim if isinstance(found, np.ndarray) else np.diff(found.indptr).max(initial=0)
            check(bytes_per_entry * int(longest))
        return found

    @property
    def fills_in(self) -> bool:
        """Whether missing entries are filled in, and not refused."""
        return self.input is not None and self.input.missing != "refuse"

    def shown(self) -> dict[str, Any]:
        """Return the spec as records show it: without `fill`, unless entries are filled in the old way, `before`."""
        members = self.model_dump(mode="json")
        if self.fills_in and members["input"].pop("fill", "before") == "before":
            members["input"]["fill"] = "before"
        return members

    def canonical(self) -> str:
        """Return the spec as JSON with every default filled in and every alias resolved: equal for equal maps."""
        return self.model_dump_json()


class Built(NamedTuple):
    """Frozen arrays of a map, their numbers of frequencies and columns, and warnings and figures for the client."""

    arrays: Arrays
    n_frequencies: int
    n_output: int
    warnings: tuple[str, ...]
    report: dict[str, float] | None = None
    """Figures of learning, as the sampler defines them; None if nothing was learned."""


class FrozenArray(NamedTuple):
    """Largest possible shape of a frozen array, and its dtype."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Size of an array of this shape, in bytes."""
        return prod(self.shape) * self.dtype.itemsize


class Fetched(NamedTuple):
    """An array that clients can fetch."""

    axes: int
    described: str
    """Description that can follow the word "Fetch"."""
    dtype: str = "the map's"


class Spectrum(NamedTuple):
    """Frequencies and weights with the kernel that they approximate, Σ ξ_l cos(w_l·δ) ≈ k(δ)/scale, all in float64."""

    frequencies: Matrix
    """w, (n_frequencies, d)."""
    weights: Matrix
    """ξ, (n_frequencies,); they sum to 1 where features are normalised."""
    kernel: ShiftInvariantKernel
    scale: float
    """k(0) where features are normalised, else 1."""


class ClosedForms(NamedTuple):
    """Variances of kernel estimates for pairs of rows, as far as they are known in closed form."""

    own: str | None
    """Name of the variance of this map itself; None if it is unknown. For some specs, `by_name` has no such entry."""
    by_name: dict[str, Matrix]
    """Variances, (n,) each, by names that the diagnostic `variance` explains."""


class Gives(StrEnum):
    """Results that a map may give besides its Gram block."""

    features = "features"
    codes = "codes"
    samples = "samples"
    frequencies = "frequencies"
    anchors = "anchors"
    """Rows that the map was built from, around which its errors are measured."""


Unit = Literal["frequencies", "hashes", "landmarks"]


class TakenMap(NamedTuple):
    """A map for export: everything that features or codes are computed from, and what identifies the map."""

    spec: BaseSpec
    text: str
    """Spec as it is stored, in JSON."""
    digest: str
    parameter_stream: int | None
    """Version of the stream of random parameters; None if the map has no stream."""
    arrays: Mapping[str, Array | RowBlocks]
    """Frozen arrays, and those of `derived_arrays`. Arrays in blocks can be read only once."""

    @property
    def told(self) -> dict[str, str]:
        """Metadata of an exported file, besides its arrays."""
        stream = {} if self.parameter_stream is None else {"parameter_stream": str(self.parameter_stream)}
        return {"spec": self.text, "digest": self.digest, **stream}
