"""Maps of kernel gmm: generalized consistent weighted sampling."""

from collections.abc import Mapping
from typing import Literal, Self

from app.core.arrays import Array
from app.core.hashing.parameter_stream import STREAM_VERSION
from app.core.hashing.sampling import DrawnParameters, HeldParameters, Parameters, table_bytes
from app.core.kernels.base import AnyKernel
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.maps.terms import Arrays, BaseSpec
from app.core.maps.weighted_minhash import WeightedMinHashMap, kernel_and_size
from app.core.model import GMM
from app.core.samplers.base import AnySampler

# Peak memory while a table is filled, as a multiple of the size of the table.
_TABLES_WHILE_FILLED = 3


class ConsistentWeightedSampling(AnySampler):
    """s hashes (i*, t*) whose collision probability is the min-max kernel.

    Choose when:
        Use it with kernel gmm, unless rows have hundreds of nonzero entries: there dart_minhash is faster. Codes of
        pairs collide with probability exactly gmm. zero_bit codes collide slightly more often (by .013 on letter data),
        and much more often (by .10 to .36) on data with few dominant columns. A row may have some 4,000,000 entries:
        each takes 64 bytes, and all of them no more than a dataset may.
    """

    source = f"{GMM}, sections 1.3 and 1.4, algorithm 1"
    limits = ("kernel gmm only",)
    bytes_per_entry = 64

    kind: Literal["gcws"]

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """Return this sampler for kernel gmm, and no sampler for other kernels."""
        return (cls(kind="gcws"),) if isinstance(kernel, GeneralizedMinMax) else ()


class ConsistentSamplingMap(WeightedMinHashMap):
    """Map whose samples use random draws for each coordinate and hash, held in a table if that is of moderate size."""

    samplers = (ConsistentWeightedSampling,)
    parameter_stream = STREAM_VERSION
    samples_at_once = 1 << 20
    arrives_first = False

    @classmethod
    def source(cls, spec: BaseSpec, threads: int) -> Parameters:
        """Return the parameters of all hashes: held in a table if that is of moderate size, else drawn at each use."""
        n_coordinates, s = 2 * spec.input_dim, kernel_and_size(spec)[1]
        if table_bytes(n_coordinates, s):
            return HeldParameters(spec.seed, n_coordinates, s, threads)
        return DrawnParameters(spec.seed, threads)

    @classmethod
    def drawing_bytes(cls, spec: BaseSpec) -> int:
        """Return the memory of the table of parameters while it is filled."""
        return _TABLES_WHILE_FILLED * table_bytes(2 * spec.input_dim, kernel_and_size(spec)[1])

    @classmethod
    def derived_arrays(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """Return the table `parameters` of r, 1/r, κ and β of each coordinate i and hash, (2d, 4, s), if it is held.

        A table that would be too large is left out. The kernel's `center` (d,), if any, is rounded to the map's dtype.
        """
        found, s = super().derived_arrays(spec, arrays), kernel_and_size(spec)[1]
        if table_bytes(2 * spec.input_dim, s):
            found["parameters"] = HeldParameters(spec.seed, 2 * spec.input_dim, s, 1).table
        return found
