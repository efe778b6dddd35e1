"""Memory that a request for recommendations takes, known before anything is built."""

from collections.abc import Iterator, Sequence

from app.core.kernels import Kernel
from app.core.maps import family
from app.core.maps.results import Gives
from app.core.recommendations.candidates import Wanted, candidates, column_counts
from app.core.samplers import Sampler
from app.core.spec import MapSpec

# Of a row in one column: a feature, a sample; of a pair of rows: kernels and errors; of a coordinate of a row.
_BYTES_PER_FEATURE, _BYTES_PER_SAMPLE = 8, 72
_BYTES_PER_PAIR = 32
_BYTES_PER_ENTRY = 24
# Recommended maps have cos_sin features of float32.
_COLUMNS_PER_FREQUENCY, _FROZEN_BYTES = 2, 4


def widest_map_bytes(input_dim: int, wanted: Wanted, kernel: Kernel) -> int:
    """Memory of the frozen arrays of the widest map that may be recommended; hashes freeze none."""
    if not kernel.has_frequencies:
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
    """The wishes; if they name no budget, without sizes whose frozen arrays, or whose trials, take more memory."""
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
    made = 0
    for columns, spec in _accepted(kernel, input_dim, wanted, samplers):
        its_family = family(spec)
        of_entry = _BYTES_PER_FEATURE if Gives.features in its_family.gives else _BYTES_PER_SAMPLE
        made = max(made, its_family.drawing_bytes(spec) + n * columns * of_entry)
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
