"""What a request for recommendations costs, before anything is built.

Times are those of one core, measured on the default samplers from 64 to 16,384 columns, 4 to 784 coordinates and 30 to
1,000 rows. They are told in operations, as the setting `max_diagnostic_operations` counts them.
"""

from collections.abc import Iterator, Sequence

from app.core.kernels import Kernel
from app.core.kernels.gmm import GeneralizedMinMax
from app.core.maps import family
from app.core.maps.fourier.drawing_cost import BUILD_NS, OPERATIONS_PER_NS, drawing_ns
from app.core.recommendations.candidates import Wanted, candidates, column_counts
from app.core.samplers import Sampler
from app.core.spec import MapSpec

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
    if isinstance(kernel, GeneralizedMinMax):
        per_column: float = _NS_PER_COMPARISON * n * n + _NS_PER_HASH * n * input_dim
    else:
        per_column = _NS_PER_PRODUCT * n * (n + input_dim) + _NS_PER_FEATURE * n
    total = 0.0
    for columns, spec in _accepted(kernel, input_dim, wanted, samplers):
        drawing = drawing_ns(spec)
        total += _NS_PER_SOLUTION if drawing is None else BUILD_NS + drawing
        total += columns * per_column + _NS_PER_ERROR * n * n
    return int(OPERATIONS_PER_NS * (n * n * input_dim + seeds * total))


def widest_map_bytes(input_dim: int, wanted: Wanted, kernel: Kernel) -> int:
    """Of the frozen arrays of the widest map that may be recommended; hashes freeze none."""
    if isinstance(kernel, GeneralizedMinMax):
        return 0
    return _FROZEN_BYTES * (input_dim + 1) * (column_counts(wanted)[-1] // _COLUMNS_PER_FREQUENCY)


def fitting(
    wanted: Wanted,
    n: int,
    input_dim: int,
    samplers: Sequence[Sampler] | None,
    kernel: Kernel,
    *,
    map_bytes: int,
    work_bytes: int,
) -> Wanted:
    """What is wanted, where it names no budget without sizes whose frozen arrays, or whose trials, take more memory."""
    if wanted.budget is not None:
        return wanted
    while wanted.most > _COLUMNS_PER_FREQUENCY and (
        widest_map_bytes(input_dim, wanted, kernel) > map_bytes
        or recommended_bytes(n, input_dim, wanted, samplers, kernel) > work_bytes
    ):
        wanted = wanted._replace(most=wanted.most // 2)
    return wanted


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
    hashing = isinstance(kernel, GeneralizedMinMax)
    made = 0
    for columns, spec in _accepted(kernel, input_dim, wanted, samplers):
        of_row = (_BYTES_PER_SAMPLE if hashing else _BYTES_PER_FEATURE) * columns
        made = max(made, family(spec).drawing_bytes(spec) + n * of_row)
    dense = 0 if kernel.compares_sparse else _BYTES_PER_ENTRY * n * input_dim
    return _BYTES_PER_PAIR * n * n + dense + made


def _accepted(
    kernel: Kernel, input_dim: int, wanted: Wanted, samplers: Sequence[Sampler] | None
) -> Iterator[tuple[int, MapSpec]]:
    """The specs that are tried, with the columns they may have."""
    for columns in column_counts(wanted):
        for candidate in candidates(kernel, input_dim, columns, samplers, 0):
            if candidate.spec is not None:
                yield columns, candidate.spec
