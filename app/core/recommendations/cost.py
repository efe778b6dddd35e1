"""What a request for recommendations costs, before anything is built.

Times are those of one core, measured on the default samplers from 64 to 16,384 columns, 4 to 784 coordinates and 30 to
1,000 rows. They are told in operations, as the setting `max_diagnostic_operations` counts them.
"""

from collections.abc import Sequence

from app.core.hashing.parameters import table_bytes
from app.core.kernels import Kernel
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.recommendations.candidates import DEFAULT_SAMPLERS, Wanted, candidates, column_counts
from app.core.samplers import Sampler
from app.core.samplers.base import FrequencySampler

# Two seconds are what that setting lets pass by default.
_OPERATIONS_PER_NS = 10
# Of any map: its spec, its arrays, and the first call.
_NS_PER_BUILD = 1_200_000
# Rules that are solved for or learned: no telling from their size, so that they are work for a job.
_NS_PER_SOLUTION = 2_000_000_000
# Of a feature, for the Gram matrix and timed thrice for one seed; of a product of two; of an entry of the error.
_NS_PER_FEATURE = 7
_NS_PER_PRODUCT = 0.03
_NS_PER_ERROR = 4
# Of hashes: of an entry, likewise, and of two codes compared.
_NS_PER_HASH = 60
_NS_PER_COMPARISON = 6
# Of a row in one column: a feature, a sample; of a pair of rows: kernels and errors; of a coordinate of a row.
_BYTES_PER_FEATURE, _BYTES_PER_SAMPLE = 8, 72
_BYTES_PER_PAIR = 32
_BYTES_PER_ENTRY = 24
# What the drawing of parameters of hashes takes at its most, as a multiple of the table.
_TABLES = 3
# Recommended maps have cos_sin features of float32.
_COLUMNS_PER_FREQUENCY, _FROZEN_BYTES = 2, 4


def recommended_operations(
    n: int,
    input_dim: int,
    wanted: Wanted,
    samplers: Sequence[Sampler] | None,
    seeds: int,
    kernel: Kernel,
) -> int:
    """What `recommended` takes on n rows, at the most: with all sizes tried.

    Args:
        n: rows.
        input_dim: their length.
        wanted: budget and target; a target that is reached early ends the trials early.
        samplers: which; None for the defaults of the kernel.
        seeds: maps of each spec.
        kernel: to approximate.
    """
    counts = column_counts(wanted)
    if isinstance(kernel, GeneralizedMinMax):
        number = 1 if samplers is None else len(samplers)
        per_column: float = _NS_PER_COMPARISON * n * n + _NS_PER_HASH * n * input_dim
        builds: float = len(counts) * _NS_PER_BUILD
    else:
        tried = DEFAULT_SAMPLERS if samplers is None else samplers
        number = len(tried)
        per_column = _NS_PER_PRODUCT * n * (n + input_dim) + _NS_PER_FEATURE * n
        builds = sum(_build_ns(sampler, columns // 2, input_dim) for sampler in tried for columns in counts) / len(
            tried
        )
    each = builds + sum(counts) * per_column + len(counts) * _NS_PER_ERROR * n * n
    exact = n * n * input_dim
    return int(_OPERATIONS_PER_NS * (exact + seeds * number * each))


def widest_map_bytes(input_dim: int, wanted: Wanted, kernel: Kernel) -> int:
    """Of the frozen arrays of the widest map that may be recommended; hashes freeze none."""
    if isinstance(kernel, GeneralizedMinMax):
        return 0
    return _FROZEN_BYTES * (input_dim + 1) * (column_counts(wanted)[-1] // _COLUMNS_PER_FREQUENCY)


def fitting(wanted: Wanted, input_dim: int, kernel: Kernel, nbytes: int) -> Wanted:
    """What is wanted, where it names no budget without sizes whose frozen arrays would take more than `nbytes`."""
    if isinstance(kernel, GeneralizedMinMax):
        return wanted
    most = _COLUMNS_PER_FREQUENCY * (nbytes // (_FROZEN_BYTES * (input_dim + 1)))
    return wanted._replace(most=max(_COLUMNS_PER_FREQUENCY, min(wanted.most, most)))


def recommended_bytes(
    n: int, input_dim: int, wanted: Wanted, samplers: Sequence[Sampler] | None, kernel: Kernel
) -> int:
    """Memory that `recommended` takes beside the rows: n×n matrices, and the widest of its maps with what it makes.

    Args:
        n: rows.
        input_dim: their length.
        wanted: budget and target.
        samplers: which; None for the defaults of the kernel.
        kernel: to approximate.
    """
    columns, of_pairs = column_counts(wanted)[-1], _BYTES_PER_PAIR * n * n
    if isinstance(kernel, GeneralizedMinMax):
        centred = 0 if kernel.center is None else _BYTES_PER_ENTRY * n * input_dim
        return of_pairs + centred + _BYTES_PER_SAMPLE * n * columns + _TABLES * table_bytes(2 * input_dim, columns)
    drawing = 0
    for candidate in candidates(kernel, input_dim, columns, samplers, 0):
        sampler, s = candidate.sampler, columns // _COLUMNS_PER_FREQUENCY
        if candidate.spec is not None and isinstance(sampler, FrequencySampler):
            drawing = max(drawing, sampler.drawing_bytes(s, input_dim))
    frozen = 2 * widest_map_bytes(input_dim, wanted, kernel)
    return of_pairs + n * (_BYTES_PER_ENTRY * input_dim + _BYTES_PER_FEATURE * columns) + drawing + frozen


def _build_ns(sampler: Sampler, s: int, input_dim: int) -> float:
    if not isinstance(sampler, FrequencySampler):  # refused before it is built
        return 0.0
    drawing = sampler.drawing_ns(s, input_dim)
    return _NS_PER_SOLUTION if drawing is None else _NS_PER_BUILD + drawing
