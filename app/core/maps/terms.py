"""Types that all families of maps share: the fields of a spec, frozen arrays, results beside features and codes."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from math import prod
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from app.core.answers import RowBlocks
from app.core.arrays import (
    AFTER_INPUT,
    MAX_DIM,
    Array,
    CheckBytes,
    Matrix,
    PostedRows,
    Rows,
    check_range,
    floats,
    vectors,
)
from app.core.input import Input
from app.core.kernels.base import AnyKernel, ShiftInvariantKernel
from app.core.model import Frozen
from app.core.samplers.base import AnySampler

Arrays = dict[str, NDArray[Any]]
"""The frozen arrays of a map by name. They, not the spec, are the truth from then on."""


class ArraysOnDemand(Mapping[str, NDArray[Any]]):
    """Arrays by name: some that are held, and some that are computed anew each time they are asked for."""

    def __init__(self, held: Arrays, computed: Mapping[str, Callable[[], NDArray[Any]]]) -> None:
        self._held, self._computed = held, computed

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._computed[name]() if name in self._computed else self._held[name]

    def __contains__(self, name: object) -> bool:
        return name in self._held or name in self._computed  # Mapping would ask for the array, and so compute it

    def __iter__(self) -> Iterator[str]:
        return iter([*self._held, *self._computed])

    def __len__(self) -> int:
        return len(self._held) + len(self._computed)


class Dtype(StrEnum):
    """Precision in which arrays are frozen, and features are computed, of rows rounded to it, and answered."""

    float32 = "float32"
    float64 = "float64"


class Form(StrEnum):
    """How frequencies become output columns."""

    complex = "complex"
    cos_sin = "cos_sin"
    phase = "phase"


class BaseSpec(Frozen):
    """The fields of a spec. `MapSpec` says which kernels and samplers there are, and checks their combination."""

    input_dim: Annotated[int, Field(ge=1, le=MAX_DIM, description="Length d of a vector.")]
    kernel: AnyKernel
    sampler: AnySampler
    s: Annotated[int, Field(ge=1, le=1 << 24)] | None = Field(
        None,
        description="Number of frequencies, or of hashes where codes are given; not needed by rules that dictate it.",
    )
    seed: Annotated[
        int,
        Field(
            ge=0,
            lt=1 << 64,
            description="Source of every random choice. Maps of one seed share them, and so err alike.",
        ),
    ] = 0
    form: Annotated[Form, Field(strict=False)] = Form.cos_sin
    normalize: Annotated[bool, Field(description="Scale each feature row to unit L2 norm.")] = False
    dtype: Annotated[Dtype, Field(strict=False)] = Dtype.float32
    input: Annotated[
        Input | None,
        # Left out where there is none: the text of such a spec is what it was before there were inputs.
        Field(exclude_if=lambda value: value is None, description="What is done to each row first."),
    ] = None

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype as NumPy knows it."""
        return np.dtype(self.dtype.value)

    def gate(self, rows: PostedRows, pointer: str, check: CheckBytes = lambda _: None) -> Rows:
        """Posted rows, which stood at `pointer` of the request, as the map compares them: checked, and after `input`.

        They are in the precision in which they came, or in float64 after an input. InvalidInput where they are not
        rows of this map, TooLarge where `check` says so; see `vectors`.
        """
        if self.input is None:
            return vectors(rows, self.input_dim, self.numpy_dtype, pointer, check=check)
        changed = self.input.apply(floats(rows, self.input_dim, np.dtype(np.float64), pointer, check), pointer)
        check_range(changed, self.numpy_dtype, pointer, AFTER_INPUT)
        return changed

    @property
    def fills_in(self) -> bool:
        """Whether something stands for missing entries."""
        return self.input is not None and self.input.missing != "refuse"

    def shown(self) -> dict[str, Any]:
        """The spec as records show it, which say when missing entries are filled in only where that is the old way."""
        members = self.model_dump(mode="json")
        if self.fills_in and members["input"].pop("fill", "before") == "before":
            members["input"]["fill"] = "before"
        return members

    def canonical(self) -> str:
        """The spec as JSON with every default filled in and every alias resolved: equal for equal maps."""
        return self.model_dump_json()


class Built(NamedTuple):
    """Frozen arrays, how much they make, and what the client should know about them."""

    arrays: Arrays
    n_frequencies: int
    n_output: int
    warnings: tuple[str, ...]
    report: dict[str, float] | None = None
    """Figures of a set that was learned, as its sampler and `learned_report` tell them; None for all others."""


class FrozenArray(NamedTuple):
    """The largest shape, and the dtype, that a frozen array may have."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Size of an array of this shape."""
        return prod(self.shape) * self.dtype.itemsize


class Fetched(NamedTuple):
    """An array that clients can fetch: how many axes it has, and what it is, in words that follow "Fetch"."""

    axes: int
    described: str


class Spectrum(NamedTuple):
    """A set of frequencies beside the kernel it stands for, Σ ξ_l cos(w_l·δ) ≈ k(δ)/scale, all in float64."""

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
    """The name of this map's own, None where there is none. For some specs it has no entry in `by_name`."""
    by_name: dict[str, Matrix]
    """The variances, (n,) each, by names that the diagnostic `variance` explains."""


class Gives(StrEnum):
    """Results that a map may give beside its Gram block."""

    features = "features"
    codes = "codes"
    samples = "samples"
    frequencies = "frequencies"


class TakenMap(NamedTuple):
    """A map as it is taken away: what features or codes are computed from, and what tells which map it is."""

    spec: BaseSpec
    text: str
    """The spec as it is stored, in JSON."""
    digest: str
    parameter_stream: int | None
    """Version of the stream of random parameters; None where there is none."""
    arrays: Mapping[str, Array | RowBlocks]
    """The frozen arrays, and those that `derived_arrays` gives beside them. Blocks are made once."""

    @property
    def told(self) -> dict[str, str]:
        """What a file says beside its arrays."""
        stream = {} if self.parameter_stream is None else {"parameter_stream": str(self.parameter_stream)}
        return {"spec": self.text, "digest": self.digest, **stream}
