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
from app.core.papers import GMM
from app.core.samplers.base import AnySampler

# The memory that filling a table takes at its most, as a multiple of it.
_TABLES_WHILE_FILLED = 3


class ConsistentWeightedSampling(AnySampler):
    """s hashes (i*, t*) whose collision probability is the min-max kernel."""

    source = f"{GMM}, sections 1.3 and 1.4, algorithm 1"
    choose_when = (
        "With kernel gmm, unless rows have hundreds of entries that are not zero: there dart_minhash takes less time. "
        "Codes of pairs collide with probability gmm exactly; zero_bit codes a little "
        "more often (.013 on letter data), and much more (.10 to .36) on data with few dominant columns."
    )
    limits = ("kernel gmm only",)

    kind: Literal["gcws"]

    @classmethod
    def suggest(cls, kernel: AnyKernel, input_dim: int, most: int, dataset: str | None) -> tuple[Self, ...]:
        """For kernel gmm."""
        return (cls(kind="gcws"),) if isinstance(kernel, GeneralizedMinMax) else ()


class ConsistentSamplingMap(WeightedMinHashMap):
    """Samples by draws of their own for each coordinate and hash, from a table where that is of moderate size."""

    samplers = (ConsistentWeightedSampling,)
    parameter_stream = STREAM_VERSION
    samples_at_once = 1 << 20
    arrives_first = False

    @classmethod
    def source(cls, spec: BaseSpec, threads: int) -> Parameters:
        """The parameters of all hashes: held where the table is of moderate size, else drawn."""
        n_coordinates, s = 2 * spec.input_dim, kernel_and_size(spec)[1]
        if table_bytes(n_coordinates, s):
            return HeldParameters(spec.seed, n_coordinates, s, threads)
        return DrawnParameters(spec.seed, threads)

    @classmethod
    def drawing_bytes(cls, spec: BaseSpec) -> int:
        """Memory of the table of parameters while it is filled."""
        return _TABLES_WHILE_FILLED * table_bytes(2 * spec.input_dim, kernel_and_size(spec)[1])

    @classmethod
    def derived_arrays(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """The `parameters` r, 1/r, κ and β of coordinate i and hash, (2d, 4, s), where such a table is held at all.

        Of others, which are too large for a table, it draws none. A `center` (d,) is as the rows of the map are read.
        """
        found, s = super().derived_arrays(spec, arrays), kernel_and_size(spec)[1]
        if table_bytes(2 * spec.input_dim, s):
            found["parameters"] = HeldParameters(spec.seed, 2 * spec.input_dim, s, 1).table
        return found
