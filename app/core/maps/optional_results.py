"""Results that only some families of maps give: features, codes, frequencies. All others refuse them by name."""

from abc import ABC
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Matrix, Rows
from app.core.errors import InvalidInput
from app.core.hashing.encodings import Codes, Encoder, Encoding, Samples
from app.core.hashing.estimates import Agreements
from app.core.maps.terms import BaseSpec, Gives, Spectrum
from app.core.progress import Pause, no_pause

PAIRS = Encoder(Encoding.pairs)
"""Writes codes that tell all samples apart."""


class OptionalResults(ABC):
    """The results that a family may give; here each is refused."""

    gives: ClassVar[frozenset[Gives]]
    """The results that maps of this family give beside their Gram block; others they refuse."""

    spec: BaseSpec

    def refusal(self, wanted: Gives, called: str = "this map") -> InvalidInput:
        """The refusal of what this family does not give; `called` names the map. A family may say what helps."""
        return InvalidInput(f"{called} has sampler {self.spec.sampler.kind}, which gives no {wanted.value}")

    def check_gives(self, wanted: Gives, called: str = "this map") -> None:
        """Raise the refusal of what this family does not give."""
        if wanted not in self.gives:
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

    def uncoded(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether a row has no code, (n,)."""
        raise self.refusal(Gives.codes)

    def samples(self, rows: Rows, hashes: slice, pause: Pause = no_pause) -> Samples:
        """The samples (i*, t*) that codes are made of, (n, hashes, 2); −1 for a row without one."""
        raise self.refusal(Gives.codes)

    def agreements(self, x: Rows, y: Rows, by: Encoder) -> Agreements:
        """How many codes agree between row i of x and row i of y, written as `by` does; all must have a code."""
        raise self.refusal(Gives.codes)

    def chances(self, x: Rows, y: Rows, by: Encoder) -> Matrix:
        """How often codes of row i of x and of y, written as `by` does, are equal where their samples differ, (n,)."""
        raise self.refusal(Gives.codes)

    def rbf_pairs(self, x: Rows, y: Rows, gamma: float) -> Matrix:
        """e^(−γ(1 − ρ)) of row i of x with row i of y, ρ their cosine, (n,)."""
        raise self.refusal(Gives.codes)

    def spectrum(self) -> Spectrum:
        """The frequencies and their weights; InvalidInput where the family has none."""
        raise self.refusal(Gives.frequencies)
