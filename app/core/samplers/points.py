"""Samplers of equally weighted frequencies. To add one, write a file beside this one and list its class here."""

from typing import Annotated

from pydantic import Discriminator

from app.core.errors import InvalidInput
from app.core.kernels.base import SpectralKernel
from app.core.samplers.antithetic import Antithetic
from app.core.samplers.digital_net import DigitalNet
from app.core.samplers.halton import Halton
from app.core.samplers.latin_hypercube import LatinHypercube
from app.core.samplers.lattice import Lattice
from app.core.samplers.monte_carlo import MonteCarlo
from app.core.samplers.orthogonal import Orthogonal
from app.core.samplers.sobol import Sobol

PointKinds = MonteCarlo | Antithetic | LatinHypercube | Halton | Sobol | Lattice | DigitalNet | Orthogonal
Points = Annotated[PointKinds, Discriminator("kind")]
"""Samplers that may be the base of another sampler."""


def check_base(base: Points, kernel: SpectralKernel, s: int, input_dim: int) -> None:
    """Raise InvalidInput, with pointers into the base, if the base learns or the combination is not valid."""
    if base.learns:
        raise InvalidInput(f"a base is drawn, not learned: base {base.kind} takes no learn", "/sampler/base/learn")
    try:
        base.check(kernel, s, input_dim)
    except InvalidInput as error:
        raise InvalidInput(error.detail, error.pointer.replace("/sampler", "/sampler/base", 1)) from None
