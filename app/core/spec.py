"""The spec of a feature map: everything a client says to name one."""

from enum import StrEnum
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator

from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.model import Frozen
from app.core.samplers import Sampler
from app.core.samplers.gcws import ConsistentWeightedSampling


class Form(StrEnum):
    """How frequencies become output columns."""

    complex = "complex"
    cos_sin = "cos_sin"
    phase = "phase"


FORMS = {
    Form.complex: "√ξ_l e^{−i w_l·x}: s complex columns, a Hermitian inner product.",
    Form.cos_sin: "All √ξ_l cos(w_l·x), then all √ξ_l sin(w_l·x): 2s columns; k(x, x) is exact.",
    Form.phase: "√(2ξ_l) cos(w_l·x + b_l), b_l uniform on [0, 2π): s columns, at more variance a column pair.",
}


class Dtype(StrEnum):
    """Precision in which vectors are read, arrays are frozen, and features are computed and answered."""

    float32 = "float32"
    float64 = "float64"


class MapSpec(Frozen):
    """A feature map: sampler, kernel, s, seed, and the shape of its features."""

    input_dim: Annotated[int, Field(ge=1, le=1 << 31, description="Length d of a vector.")]
    kernel: Kernel
    sampler: Sampler
    s: Annotated[int, Field(ge=1, le=1 << 24, description="Number of frequencies, or of hashes for sampler gcws.")]
    seed: Annotated[int, Field(ge=0, lt=1 << 64, description="Source of every random choice.")] = 0
    form: Annotated[Form, Field(strict=False)] = Form.cos_sin
    normalize: Annotated[bool, Field(description="Scale each feature row to unit L2 norm.")] = False
    dtype: Annotated[Dtype, Field(strict=False)] = Dtype.float32

    @model_validator(mode="after")
    def _combination_has_a_meaning(self) -> Self:
        self.kernel.check(self.input_dim)
        hashes = isinstance(self.sampler, ConsistentWeightedSampling)
        if isinstance(self.kernel, GeneralizedMinMax):
            if not hashes:
                raise InvalidInput(
                    f"kernel gmm has no frequencies for sampler {self.sampler.kind}; its sampler is gcws",
                    "/sampler/kind",
                )
            if self.form is not Form.cos_sin or self.normalize:
                raise InvalidInput(
                    "kernel gmm gives codes, not features: form and normalize have no meaning and must be left out",
                    "/normalize" if self.normalize else "/form",
                )
        elif isinstance(self.sampler, ConsistentWeightedSampling):
            raise InvalidInput(
                f"sampler gcws hashes for kernel gmm only; kernel {self.kernel.kind} takes, for instance, sobol",
                "/sampler/kind",
            )
        else:
            self.sampler.check(self.kernel, self.s, self.input_dim)
        return self

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype as NumPy knows it."""
        return np.dtype(self.dtype.value)

    def canonical(self) -> str:
        """The spec as JSON with every default filled in and every alias resolved: equal for equal maps."""
        return self.model_dump_json()
