"""The samplers. A new one is a file of its own and its name here, or in `points` if it places points."""

from typing import Annotated

from pydantic import Discriminator

from app.core.samplers.gcws import ConsistentWeightedSampling
from app.core.samplers.halton import Halton
from app.core.samplers.moment_matching import MomentMatching
from app.core.samplers.monte_carlo import MonteCarlo
from app.core.samplers.sobol import Sobol

Sampler = Annotated[MonteCarlo | Halton | Sobol | MomentMatching | ConsistentWeightedSampling, Discriminator("kind")]
