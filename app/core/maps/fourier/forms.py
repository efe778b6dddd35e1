"""The forms of Fourier features: how the phases of the frequencies become columns."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from app.core.arrays import Array, Floats, Matrix
from app.core.maps.fourier.sine_cosine import COSINES, COSINES_AND_SINES, EXPONENTIALS
from app.core.maps.terms import BaseSpec, Form
from app.core.papers import GMM, MM, QMC, RFF


class Columns(ABC):
    """The columns of one form. Its first three attributes are what the catalogue says of it."""

    description: ClassVar[str]
    source: ClassVar[str]
    choose_when: ClassVar[str]

    written: ClassVar[int]
    """The kind of columns, one of three, as `write_columns` takes it."""
    per_frequency: ClassVar[int] = 1
    """Columns of a frequency."""
    is_complex: ClassVar[bool] = False
    has_offsets: ClassVar[bool] = False
    """Whether offsets b_l are drawn and frozen beside the frequencies."""
    squared_amplitude: ClassVar[int] = 1
    """The factor of the weight ξ_l under the root."""
    has_one_norm: ClassVar[bool] = True
    """Whether the features of all rows have the same norm, the root of Σ|ξ_l|."""

    @abstractmethod
    def variance(self, at: Matrix, at_twice: Matrix) -> Matrix:
        """Variance of one frequency's part in the kernel estimate, from φ(δ) and φ(2δ), elementwise; φ is k/k(0)."""


class _Complex(Columns):
    description = "√ξ_l e^{−i w_l·x}: s complex columns, a Hermitian inner product."
    source = f"{QMC}, algorithm 1; {MM}, algorithm 1"
    choose_when = (
        "To compare with those papers. The imaginary part is nothing but error, so that on the same frequencies the "
        "Gram error is about √2 times that of cos_sin."
    )
    written = EXPONENTIALS
    is_complex = True

    def variance(self, at: Matrix, at_twice: Matrix) -> Matrix:
        """Variance of one frequency's part in the kernel estimate, the imaginary part included."""
        return np.maximum(1 - at**2, 0)


class _CosSin(Columns):
    description = "All √ξ_l cos(w_l·x), then all √ξ_l sin(w_l·x): 2s columns; k(x, x) is exact."
    source = f"{RFF}, section 3"
    choose_when = "Unless something speaks for another: real columns, and the smallest error for s frequencies."
    written = COSINES_AND_SINES
    per_frequency = 2

    def variance(self, at: Matrix, at_twice: Matrix) -> Matrix:
        return np.maximum((1 + at_twice) / 2 - at**2, 0)


class _Phase(Columns):
    description = "√(2ξ_l) cos(w_l·x + b_l), b_l uniform on [0, 2π): s columns, at more variance a column pair."
    source = f"{RFF}, algorithm 1; {GMM}, section 2, (15)"
    choose_when = (
        "Where columns should each belong to a frequency of their own. For as many columns cos_sin with s/2 most often "
        "has the smaller error."
    )
    written = COSINES
    has_offsets = True
    squared_amplitude = 2
    has_one_norm = False

    def variance(self, at: Matrix, at_twice: Matrix) -> Matrix:
        """Variance of one frequency's part: as of cos_sin, and ½ of cos(w·(x + y) + 2b), uncorrelated with the rest."""
        return np.maximum((1 + at_twice) / 2 - at**2 + 0.5, 0)


FORMS: dict[Form, Columns] = {Form.complex: _Complex(), Form.cos_sin: _CosSin(), Form.phase: _Phase()}


def amplitudes(spec: BaseSpec, weights: Array) -> Floats:
    """What the columns of each frequency are multiplied by, (n_frequencies,) in the map's dtype, from the weights.

    With `normalize`, rows of the forms that have one norm have unit norm by that.
    """
    columns = FORMS[spec.form]
    squared = np.abs(weights).astype(np.float64) * columns.squared_amplitude
    if spec.normalize and columns.has_one_norm:
        squared /= squared.sum()
    found: Floats = np.sqrt(squared).astype(spec.numpy_dtype)
    return found
