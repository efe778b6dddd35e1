"""Maps of kernel gmm: weighted minhash by darts."""

from typing import Literal, Self

from app.core.hashing.darts import STREAM_VERSION, Darts
from app.core.kernels.base import AnyKernel
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.maps.terms import BaseSpec
from app.core.maps.weighted_minhash import WeightedMinHashMap, kernel_and_size
from app.core.samplers.base import AnySampler

# GCWS takes less time for rows of fewer entries.
_MANY_ENTRIES = 256


class DartMinHash(AnySampler):
    """s hashes (i*, t*) whose collision probability is the min-max kernel; time grows with entries plus hashes.

    Choose when:
        Use it with kernel gmm for rows of hundreds of nonzero entries, such as sparse rows of text: gcws takes a step
        for each pair of entry and hash there. It stores no table of its draws. Its codes have the same distribution as
        those of gcws, but are not the same codes. A row may have some 5,500,000 entries: each takes 48 bytes, and all
        of them no more than a dataset may.
    """

    source = (
        "Christiani (2020), DartMinHash: Fast sketching for weighted sets; in cells that follow the scale of entries"
    )
    limits = ("kernel gmm only",)
    bytes_per_entry = 48

    kind: Literal["dart_minhash"]

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """Return this sampler for kernel gmm and rows so long that it may take less time than gcws; else none."""
        is_tried = isinstance(kernel, GeneralizedMinMax) and input_dim >= _MANY_ENTRIES
        return (cls(kind="dart_minhash"),) if is_tried else ()


class DartMinHashMap(WeightedMinHashMap):
    """Map whose samples are the first darts of each row and hash; darts are drawn for all hashes together."""

    samplers = (DartMinHash,)
    parameter_stream = STREAM_VERSION
    samples_at_once = 1 << 23
    arrives_first = True

    @classmethod
    def source(cls, spec: BaseSpec, threads: int) -> Darts:
        """Return the darts of all hashes."""
        return Darts(spec.seed, kernel_and_size(spec)[1], threads)

    @classmethod
    def drawing_bytes(cls, spec: BaseSpec) -> int:
        """Return 0, as no dart is kept."""
        return 0
