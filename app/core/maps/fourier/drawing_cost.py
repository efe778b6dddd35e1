"""What the drawing of a map's frequencies takes, in time and in memory, before anything is drawn."""

from app.core.maps.base_spec import BaseSpec
from app.core.maps.fourier.allocation import allocations, spectral
from app.core.samplers.base import FrequencySampler

OPERATIONS_PER_NS = 10
"""Multiplications that pass in a nanosecond of one core."""
BUILD_NS = 1_200_000
"""What a map costs beside the drawing of its frequencies: its spec, its arrays, and the first call."""
# What a set, and the map that holds it, takes beside what its sampler does, in bytes for a coordinate.
_BYTES_PER_COORDINATE = 16


def drawing_ns(spec: BaseSpec) -> float | None:
    """Nanoseconds of one core, for all summands of the kernel; None where there is no telling, 0 for hashes."""
    sampler = spec.sampler
    if not isinstance(sampler, FrequencySampler):
        return 0.0
    each = [sampler.drawing_ns(share.size, share.block.dim(spec.input_dim)) for share in allocations(spec)]
    known = [ns for ns in each if ns is not None]
    return sum(known) if len(known) == len(each) else None


def drawing_bytes(spec: BaseSpec) -> int:
    """Memory at the most: of one summand of the kernel, and of the whole set."""
    _, sampler = spectral(spec)
    every = allocations(spec)
    largest = max(sampler.drawing_bytes(share.size, share.block.dim(spec.input_dim)) for share in every)
    return largest + _BYTES_PER_COORDINATE * spec.input_dim * sum(share.size for share in every)
