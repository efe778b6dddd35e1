"""Feature maps: built once from a spec into named arrays, opened from those arrays, applied many times."""

from app.core.maps.base import Arrays, Built
from app.core.maps.consistent_sampling import ConsistentSamplingMap
from app.core.maps.fourier import FourierMap
from app.core.spec import MapSpec

FeatureMap = FourierMap | ConsistentSamplingMap


def family(spec: MapSpec) -> type[FourierMap] | type[ConsistentSamplingMap]:
    """The kind of map a spec names."""
    return ConsistentSamplingMap if spec.kernel.kind == "gmm" else FourierMap


def opened(spec: MapSpec, arrays: Arrays, threads: int) -> FeatureMap:
    """The map of a spec and its frozen arrays, ready for use; its calls use up to `threads` threads of their own."""
    return ConsistentSamplingMap(spec, threads) if spec.kernel.kind == "gmm" else FourierMap(spec, arrays)


__all__ = ["Arrays", "Built", "ConsistentSamplingMap", "FeatureMap", "FourierMap", "family", "opened"]
