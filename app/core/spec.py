"""The spec of a feature map: everything a client says to name one."""

from typing import Self

from pydantic import model_validator

from app.core.kernels import Kernel
from app.core.maps import family
from app.core.maps.base_spec import BaseSpec, Dtype
from app.core.maps.fourier.forms import Form
from app.core.samplers import Sampler

__all__ = ["Dtype", "Form", "MapSpec"]


class MapSpec(BaseSpec):
    """A feature map: sampler, kernel, s, seed, and the shape of its features."""

    kernel: Kernel
    sampler: Sampler

    @model_validator(mode="after")
    def _combination_has_a_meaning(self) -> Self:
        self.kernel.check(self.input_dim)
        family(self).check(self)
        return self
