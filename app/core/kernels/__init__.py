"""The kernels. A new one is a file of its own and its name in this list."""

from typing import Annotated

from pydantic import Discriminator

from app.core.kernels.cauchy import Cauchy
from app.core.kernels.gaussian import Gaussian
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.kernels.laplacian import Laplacian

Kernel = Annotated[Gaussian | Laplacian | Cauchy | GeneralizedMinMax, Discriminator("kind")]
