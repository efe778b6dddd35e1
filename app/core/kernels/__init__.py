"""The kernels. To add one, write a module for it and add its class to `Kernel`."""

from typing import Annotated, get_args

from pydantic import Discriminator

from app.core.kernels.anova import Anova
from app.core.kernels.base import AnyKernel
from app.core.kernels.cauchy import Cauchy
from app.core.kernels.chi_squared import ChiSquared
from app.core.kernels.correlation_rbf import CorrelationRbf
from app.core.kernels.gaussian import Gaussian
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.kernels.laplacian import Laplacian
from app.core.kernels.matern import Matern
from app.core.kernels.polynomial import Polynomial
from app.core.kernels.rational_quadratic import RationalQuadratic

Kernel = Annotated[
    Gaussian
    | Laplacian
    | Cauchy
    | Matern
    | RationalQuadratic
    | Anova
    | CorrelationRbf
    | GeneralizedMinMax
    | Polynomial
    | ChiSquared,
    Discriminator("kind"),
]

KERNELS: dict[str, type[AnyKernel]] = {model.kind_name(): model for model in get_args(get_args(Kernel)[0])}
"""Kernel classes by kind."""
