"""What agreeing codes tell of the kernel of two rows, for those who keep codes and compare them."""

from abc import ABC, abstractmethod

import numpy as np

from app.core.arrays import Matrix, Whole
from app.core.hashing.encodings import BitsOf, Encoder, Encoding
from app.core.hashing.estimates import Estimate, kernel_estimate
from app.core.hashing.sign_law import SignLaw
from app.core.hashing.signed_encodings import SIGNED
from app.core.hashing.signed_estimates import kernel_of_bits

# Of a sample (i*, t*) whole: estimates are unbiased, and one in 256 other samples has the same.
_BITS = 8


class CodeLaw(ABC):
    """How often s codes of two rows agree, each written as `encoder` says, and the kernel from that."""

    encoder: Encoder
    """Encoding `packed`, of 1, 2, 4, 8 or 16 bits."""

    def __init__(self, s: int) -> None:
        self.s = s

    @abstractmethod
    def rates(self, kernels: Matrix) -> Matrix:
        """How often codes of rows of these kernels agree, (n,)."""

    @abstractmethod
    def kernel(self, counts: Whole) -> Estimate:
        """The kernel of rows of which so many codes agree, with its standard error, (n,)."""


class MinMaxLaw(CodeLaw):
    """Of samples: these agree as often as the min-max kernel says, and others by chance."""

    encoder = Encoder(Encoding.packed, _BITS, BitsOf.pair)
    _chance = 2.0**-_BITS

    def rates(self, kernels: Matrix) -> Matrix:
        """The kernel, and chance for the rest."""
        found: Matrix = kernels * (1 - self._chance) + self._chance
        return found

    def kernel(self, counts: Whole) -> Estimate:
        """The rate of agreement, freed from chance."""
        return kernel_estimate(np.asarray(counts) / self.s, self.s, self._chance)


class SignedLaw(CodeLaw):
    """Of signed codes, a bit a frequency, by the law of the kernel."""

    encoder = SIGNED

    def __init__(self, s: int, law: SignLaw) -> None:
        super().__init__(s)
        self._law = law

    def rates(self, kernels: Matrix) -> Matrix:
        """What is not differing."""
        return 1 - self._law.rates(kernels)

    def kernel(self, counts: Whole) -> Estimate:
        """By inversion of the law."""
        return kernel_of_bits(np.asarray(counts), self.s, self._law)
