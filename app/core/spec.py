"""The spec of a feature map: everything a client says to name one."""

from enum import StrEnum
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator
from scipy.sparse import csr_array

from app.core.arrays import MAX_DIM, Array, Rows, vectors
from app.core.errors import InvalidInput
from app.core.kernels import Kernel
from app.core.kernels.base import Block, ShiftInvariantKernel
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.model import Frozen
from app.core.papers import GMM, MM, QMC, RFF
from app.core.samplers import Sampler
from app.core.samplers.advice import SizeAdvice
from app.core.samplers.base import FrequencySampler
from app.core.samplers.gcws import ConsistentWeightedSampling
from app.core.samplers.uploaded import Uploaded


class Form(StrEnum):
    """How frequencies become output columns."""

    complex = "complex"
    cos_sin = "cos_sin"
    phase = "phase"


class FormText(NamedTuple):
    """What the catalogue says of a form."""

    description: str
    source: str
    choose_when: str


FORMS = {
    Form.complex: FormText(
        "√ξ_l e^{−i w_l·x}: s complex columns, a Hermitian inner product.",
        f"{QMC}, algorithm 1; {MM}, algorithm 1",
        "To compare with those papers. The imaginary part is nothing but error, so that on the same frequencies the "
        "Gram error is about √2 times that of cos_sin.",
    ),
    Form.cos_sin: FormText(
        "All √ξ_l cos(w_l·x), then all √ξ_l sin(w_l·x): 2s columns; k(x, x) is exact.",
        f"{RFF}, section 3",
        "Unless something speaks for another: real columns, and the smallest error for s frequencies.",
    ),
    Form.phase: FormText(
        "√(2ξ_l) cos(w_l·x + b_l), b_l uniform on [0, 2π): s columns, at more variance a column pair.",
        f"{RFF}, algorithm 1; {GMM}, section 2, (15)",
        "Where columns should each belong to a frequency of their own. For as many columns cos_sin with s/2 most often "
        "has the smaller error.",
    ),
}


class Dtype(StrEnum):
    """Precision in which vectors are read, arrays are frozen, and features are computed and answered."""

    float32 = "float32"
    float64 = "float64"


class MapSpec(Frozen):
    """A feature map: sampler, kernel, s, seed, and the shape of its features."""

    input_dim: Annotated[int, Field(ge=1, le=MAX_DIM, description="Length d of a vector.")]
    kernel: Kernel
    sampler: Sampler
    s: Annotated[int, Field(ge=1, le=1 << 24)] | None = Field(
        None, description="Number of frequencies, or of hashes for sampler gcws; not needed by rules that dictate it."
    )
    seed: Annotated[int, Field(ge=0, lt=1 << 64, description="Source of every random choice.")] = 0
    form: Annotated[Form, Field(strict=False)] = Form.cos_sin
    normalize: Annotated[bool, Field(description="Scale each feature row to unit L2 norm.")] = False
    dtype: Annotated[Dtype, Field(strict=False)] = Dtype.float32

    @model_validator(mode="after")
    def _combination_has_a_meaning(self) -> Self:
        self.kernel.check(self.input_dim)
        if isinstance(self.kernel, GeneralizedMinMax):
            self._check_hashing(self.kernel)
        elif isinstance(self.sampler, ConsistentWeightedSampling):
            raise InvalidInput(
                f"sampler gcws hashes for kernel gmm only; kernel {self.kernel.kind} takes, for instance, sobol",
                "/sampler/kind",
            )
        else:
            self._check_shares(self.sampler)
        return self

    def _check_shares(self, sampler: FrequencySampler) -> None:
        every = allocations(self)
        # Summands of one size are alike to a sampler, and there may be thousands.
        alike = {(share.block.dim(self.input_dim), share.size): share for share in every}
        if isinstance(sampler, Uploaded) and len(alike) > 1:
            raise InvalidInput(
                f"sampler uploaded serves each of the {len(every)} subsets with the same frequencies, so all must have "
                f"one size; they have from {min(alike)[0]} to {max(alike)[0]} coordinates: upload for subsets of one "
                "size, or take another sampler, for instance, sobol",
                "/sampler/kind",
            )
        if sampler.learns and every[0].block.coordinates is not None:
            raise InvalidInput(
                f"sampler {self.sampler.kind} learns a set for one kernel on all coordinates; kernel "
                f"{self.kernel.kind} is a sum over subsets of them: sampler sobol works",
                "/sampler/kind",
            )
        # The largest summand first: what is enough for it is enough for all.
        for (dim, size), share in sorted(alike.items(), reverse=True, key=lambda item: item[0]):
            try:
                sampler.check(share.block.kernel, size, dim)
            except InvalidInput as error:
                raise InvalidInput(of_allocation(error.detail, share, every, self), error.pointer) from None

    def _check_hashing(self, kernel: GeneralizedMinMax) -> None:
        if not isinstance(self.sampler, ConsistentWeightedSampling):
            raise InvalidInput(
                f"kernel gmm has no frequencies for sampler {self.sampler.kind}; its sampler is gcws", "/sampler/kind"
            )
        if self.s is None:
            raise InvalidInput("s is missing; it is the number of hashes", "/s")
        kernel.rounded(self.numpy_dtype)
        if self.form is not Form.cos_sin or self.normalize:
            raise InvalidInput(
                "kernel gmm gives codes, not features: form and normalize have no meaning and must be left out",
                "/normalize" if self.normalize else "/form",
            )

    @property
    def takes_job(self) -> bool:
        """Whether to build the map takes a dataset, or more than about two seconds: work for the background."""
        sampler = self.sampler
        return isinstance(sampler, FrequencySampler) and any(
            sampler.takes_job(share.size, share.block.dim(self.input_dim)) for share in allocations(self)
        )

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype as NumPy knows it."""
        return np.dtype(self.dtype.value)

    def gate(self, rows: Array | csr_array, pointer: str) -> Rows:
        """Posted rows, which stood at `pointer` of the request, through the gate of this map's width and dtype."""
        return vectors(rows, self.input_dim, self.numpy_dtype, pointer)

    def canonical(self) -> str:
        """The spec as JSON with every default filled in and every alias resolved: equal for equal maps."""
        return self.model_dump_json()


class Allocation(NamedTuple):
    """A summand of the kernel, and how many frequencies it gets."""

    block: Block
    size: int


def allocations(spec: MapSpec) -> list[Allocation]:
    """The summands of a spectral kernel with their numbers of frequencies: s shared out evenly, or a rule's own count.

    Raises:
        InvalidInput: there are fewer frequencies than summands.
    """
    if not isinstance(spec.kernel, ShiftInvariantKernel) or not isinstance(spec.sampler, FrequencySampler):
        raise TypeError(f"kernel {spec.kernel.kind} has no frequencies")
    blocks = spec.kernel.blocks(spec.input_dim)
    each, left = divmod(spec.s or 0, len(blocks))
    found = [
        Allocation(block, spec.sampler.count(spec.s and each + (i < left), block.dim(spec.input_dim)))
        for i, block in enumerate(blocks)
    ]
    if found[-1].size == 0:  # never with a count of the rule's own
        raise InvalidInput(f"s is {spec.s}; each of the {len(blocks)} subsets needs a frequency at least", "/s")
    return found


def of_allocation(text: str, share: Allocation, every: list[Allocation], spec: MapSpec) -> str:
    """What a sampler says of one share: where there are several, of which, and what is better for all of them."""
    if len(every) == 1:
        return str(text)
    s = sum(other.size for other in every)
    if isinstance(text, SizeAdvice):
        alike = sum(other.size == share.size for other in every)
        which = (
            f"each of the {alike} subsets gets" if alike == len(every) else f"{alike} of the {len(every)} subsets get"
        )
        return f"{which} {share.size} of the s = {s} frequencies: {text.for_each_of(len(every))}"
    gets = f" with {share.size} of the s = {s} frequencies" if s == spec.s else ""
    return f"on a subset of {share.block.dim(spec.input_dim)} coordinates{gets}: {text}"
