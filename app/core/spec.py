"""Spec of a feature map: everything that a client sends to define one."""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Discriminator, model_validator

from app.core.kernels import Kernel
from app.core.maps import FAMILIES, family_of
from app.core.maps.terms import BaseSpec, Dtype, Form
from app.core.samplers.base import AnySampler

__all__ = ["Dtype", "Form", "MapSpec", "Sampler"]

if TYPE_CHECKING:
    Sampler = AnySampler
else:  # the union of the samplers of all families
    Sampler = Annotated[reduce(or_, (sampler for of in FAMILIES for sampler in of.samplers)), Discriminator("kind")]


class MapSpec(BaseSpec):
    """Spec of a feature map: sampler, kernel, s, seed, and options of its features."""

    kernel: Kernel
    """Kernel that the map approximates."""
    sampler: Sampler
    """Sampler that draws the frequencies, hashes or landmarks."""

    def as_before(self) -> Self:
        """Return the spec with defaults of earlier versions for fields that the request leaves out."""
        changes = {"sampler": self.sampler.as_before(), "input": self.input and self.input.as_before()}
        return self.model_copy(update=changes)

    def with_defaults(self) -> Self:
        """Return the spec of a request with this version's defaults for the fields that the request leaves out."""
        return self if self.input is None else self.model_copy(update={"input": self.input.with_defaults()})

    @model_validator(mode="after")
    def _combination_has_a_meaning(self) -> Self:
        self.kernel.check(self.input_dim)
        if self.input is not None:
            self.input.check(self.input_dim)
        family_of(self.sampler).check(self)
        return self
