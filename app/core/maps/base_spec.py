"""The fields of a spec, for families of maps, whatever kernels and samplers there are."""

from enum import StrEnum
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from app.core.arrays import MAX_DIM, PostedRows, Rows, vectors
from app.core.kernels.base import AnyKernel
from app.core.maps.fourier.forms import Form
from app.core.model import Frozen
from app.core.samplers.base import AnySampler


class Dtype(StrEnum):
    """Precision in which vectors are read, arrays are frozen, and features are computed and answered."""

    float32 = "float32"
    float64 = "float64"


class BaseSpec(Frozen):
    """The fields of a spec. `MapSpec` says which kernels and samplers there are, and checks their combination."""

    input_dim: Annotated[int, Field(ge=1, le=MAX_DIM, description="Length d of a vector.")]
    kernel: AnyKernel
    sampler: AnySampler
    s: Annotated[int, Field(ge=1, le=1 << 24)] | None = Field(
        None, description="Number of frequencies, or of hashes for sampler gcws; not needed by rules that dictate it."
    )
    seed: Annotated[int, Field(ge=0, lt=1 << 64, description="Source of every random choice.")] = 0
    form: Annotated[Form, Field(strict=False)] = Form.cos_sin
    normalize: Annotated[bool, Field(description="Scale each feature row to unit L2 norm.")] = False
    dtype: Annotated[Dtype, Field(strict=False)] = Dtype.float32

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype as NumPy knows it."""
        return np.dtype(self.dtype.value)

    def gate(self, rows: PostedRows, pointer: str) -> Rows:
        """Posted rows, which stood at `pointer` of the request, through the gate of this map's width and dtype."""
        return vectors(rows, self.input_dim, self.numpy_dtype, pointer)

    def canonical(self) -> str:
        """The spec as JSON with every default filled in and every alias resolved: equal for equal maps."""
        return self.model_dump_json()
