"""The forms of Fourier features: how the phases of the frequencies become columns."""

from enum import StrEnum
from typing import NamedTuple

from app.core.papers import GMM, MM, QMC, RFF


class Form(StrEnum):
    """How frequencies become output columns."""

    complex = "complex"
    cos_sin = "cos_sin"
    phase = "phase"


class FormText(NamedTuple):
    """What the catalogue says of a form."""

    description: str
    source: str
    choose_when: str


FORMS = {
    Form.complex: FormText(
        "√ξ_l e^{−i w_l·x}: s complex columns, a Hermitian inner product.",
        f"{QMC}, algorithm 1; {MM}, algorithm 1",
        "To compare with those papers. The imaginary part is nothing but error, so that on the same frequencies the "
        "Gram error is about √2 times that of cos_sin.",
    ),
    Form.cos_sin: FormText(
        "All √ξ_l cos(w_l·x), then all √ξ_l sin(w_l·x): 2s columns; k(x, x) is exact.",
        f"{RFF}, section 3",
        "Unless something speaks for another: real columns, and the smallest error for s frequencies.",
    ),
    Form.phase: FormText(
        "√(2ξ_l) cos(w_l·x + b_l), b_l uniform on [0, 2π): s columns, at more variance a column pair.",
        f"{RFF}, algorithm 1; {GMM}, section 2, (15)",
        "Where columns should each belong to a frequency of their own. For as many columns cos_sin with s/2 most often "
        "has the smaller error.",
    ),
}
