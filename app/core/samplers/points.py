"""The samplers of equally weighted frequencies. A new one is a file of its own and its name in this list."""

from typing import Annotated

from pydantic import Discriminator

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
"""What may be the base of another sampler."""
