"""The base of the projections: what makes phases of rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

from app.core.arrays import Floats, Rows
from app.core.maps.terms import Arrays, BaseSpec, FrozenArray


class Projection(ABC):
    """Phases w_l·x of rows x, for frequencies w_l that frozen arrays stand for.

    A projection owns the frozen arrays that say what the frequencies are, and all that is computed from them. What it
    writes of a row does not depend, bit for bit, on the rows beside it.
    """

    has_weights: ClassVar[bool] = True
    """Whether weights are frozen beside the frequencies; else each is 1/n_frequencies."""

    n_frequencies: int
    frequencies_per_block: int = 1
    """Slices of frequencies begin at a multiple of it."""
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

    @property
    @abstractmethod
    def frequencies(self) -> Floats:
        """w, (n_frequencies, d), in the map's dtype; a projection that does not hold them computes them anew."""

    @abstractmethod
    def operations(self, rows: Rows) -> int:
        """Multiplications of a matrix product that take as long as the phases of the rows."""

    @abstractmethod
    def projector(self, rows: Rows) -> Callable[[slice, Floats], None]:
        """The function that writes phases of the rows, (n, d).

        Its arguments: a slice of k frequencies, and where to write their phases, (n, k), C-contiguous.
        """
