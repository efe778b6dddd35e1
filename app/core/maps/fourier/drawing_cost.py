"""What time the drawing of a map's frequencies takes, before anything is drawn."""

from app.core.maps.base_spec import BaseSpec
from app.core.maps.fourier.allocation import allocations
from app.core.samplers.base import FrequencySampler

OPERATIONS_PER_NS = 10
"""Multiplications that pass in a nanosecond of one core."""
BUILD_NS = 1_200_000
"""What a map costs beside the drawing of its frequencies: its spec, its arrays, and the first call."""


def drawing_ns(spec: BaseSpec) -> float | None:
    """Nanoseconds of one core, for all summands of the kernel; None where there is no telling, 0 for hashes."""
    sampler = spec.sampler
    if not isinstance(sampler, FrequencySampler):
        return 0.0
    each = [sampler.drawing_ns(share.size, share.block.dim(spec.input_dim)) for share in allocations(spec)]
    known = [ns for ns in each if ns is not None]
    return sum(known) if len(known) == len(each) else None
