"""The samplers that place points in the unit cube. A new one is a file of its own and its name in this list."""

from typing import Annotated

from pydantic import Discriminator

from app.core.samplers.halton import Halton
from app.core.samplers.monte_carlo import MonteCarlo
from app.core.samplers.sobol import Sobol

Points = Annotated[MonteCarlo | Halton | Sobol, Discriminator("kind")]
"""What may be the base of another sampler."""
