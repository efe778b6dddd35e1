"""Results that only some families of maps give: features, codes, frequencies. All others refuse them by name."""

from abc import ABC
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.core.arrays import Array, Matrix, Rows
from app.core.errors import InvalidInput
from app.core.hashing.code_laws import CodeLaw
from app.core.hashing.encodings import CodeOptions, Codes, Encoder, Encoding, Samples
from app.core.hashing.estimates import Agreements
from app.core.maps.terms import BaseSpec, Gives, Spectrum
from app.core.progress import Pause, no_pause

PAIRS = Encoder(Encoding.pairs)
"""Writes codes that tell all samples apart."""


class OptionalResults(ABC):
    """The results that a family may give; here each is refused."""

    gives: ClassVar[frozenset[Gives]]
    """The results that maps of this family may give beside their Gram block; others they refuse."""

    spec: BaseSpec
    usual_encoders: ClassVar[tuple[Encoder, ...]] = ()
    """How codes are written that are posted without a word on how, told apart by the shape of a row.

    By the first of them vectors are compared.
    """

    def refusal(self, wanted: Gives, called: str = "this map") -> InvalidInput:
        """The refusal of what this family does not give; `called` names the map. A family may say what helps."""
        return InvalidInput(f"{called} has sampler {self.spec.sampler.kind}, which gives no {wanted.value}")

    @classmethod
    def given(cls, spec: BaseSpec) -> frozenset[Gives]:
        """What a map of the spec gives of `gives`: all of it, unless a family says which maps lack some."""
        return cls.gives

    @cached_property
    def _given(self) -> frozenset[Gives]:
        return self.given(self.spec)

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

    def uncoded(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether a row has no code, (n,)."""
        raise self.refusal(Gives.codes)

    def samples(self, rows: Rows, hashes: slice, pause: Pause = no_pause) -> Samples:
        """The samples (i*, t*) that codes are made of, (n, hashes, 2); −1 for a row without one."""
        raise self.refusal(Gives.samples)

    def agreements(self, x: Rows, y: Rows, by: Encoder) -> Agreements:
        """How many codes agree between row i of x and row i of y, written as `by` does; all must have a code."""
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
