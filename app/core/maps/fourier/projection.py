"""The base of the projections: what makes phases of rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from app.core.arrays import Array, Floats, Rows
from app.core.building import Building
from app.core.maps.terms import Arrays, BaseSpec, FrozenArray


class Drawn(NamedTuple):
    """A set of frequencies, as it is frozen, and what the client should know of it."""

    arrays: Arrays
    n_frequencies: int
    warnings: tuple[str, ...]
    report: dict[str, float] | None = None
    """See `Built`."""


class Projection(ABC):
    """Phases w_l·x of rows x, for frequencies w_l that frozen arrays stand for.

    A projection owns the frozen arrays that say what the frequencies are, and all that is computed from them. What it
    writes of a row does not depend, bit for bit, on the rows beside it.
    """

    is_dense: ClassVar[bool] = True
    """Whether frequencies and weights are frozen themselves; else both are computed, each weight as 1/n_frequencies."""

    n_frequencies: int
    frequencies_per_block: int = 1
    """Slices of frequencies begin at a multiple of it."""
    most_rows: int = 1 << 62
    """The most rows that a projector should be asked for."""
    largest_norm: float
    """At least the largest |w_l|₁: no phase is larger than this times the largest entry of a row."""
    bytes: int
    """Memory that it holds."""

    @abstractmethod
    def __init__(self, spec: BaseSpec, arrays: Arrays) -> None:
        """Open the frozen arrays."""

    @classmethod
    @abstractmethod
    def frozen(cls, spec: BaseSpec, s: int) -> dict[str, FrozenArray]:
        """The arrays that say what s frequencies are."""

    @classmethod
    @abstractmethod
    def opening_bytes(cls, spec: BaseSpec, s: int) -> int:
        """Memory of these arrays and of the open projection."""

    @classmethod
    def weights(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Array:
        """The weights of the frequencies, (n_frequencies,), in the map's dtype; here those that are frozen."""
        return arrays["weights"]

    @classmethod
    def derived(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """What phases are made with beside the frozen arrays; here nothing."""
        return {}

    @classmethod
    @abstractmethod
    def draw(cls, spec: BaseSpec, rng: np.random.Generator, building: Building) -> Drawn:
        """Draw the set that a spec names, all randomness from `rng`, and freeze it.

        Raises:
            InvalidInput: there is no such set, or it leaves the range of the dtype.
        """

    @property
    @abstractmethod
    def frequencies(self) -> Floats:
        """w, (n_frequencies, d), in the map's dtype; a projection that does not hold them computes them anew."""

    @abstractmethod
    def operations(self, rows: Rows) -> int:
        """Cost of the phases of these rows, counted in multiplications of a matrix product."""

    @abstractmethod
    def projector(self, rows: Rows) -> Callable[[slice, Floats], None]:
        """The function that writes phases of the rows, (n, d).

        Its arguments: a slice of k frequencies, and where to write their phases, in the first k columns of n rows,
        C-contiguous.
        """
