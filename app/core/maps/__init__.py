"""Feature maps: built once from a spec into named arrays, opened from those arrays, applied many times."""

from app.core.maps.base import Arrays, Built
from app.core.maps.consistent_sampling import ConsistentSamplingMap
from app.core.maps.fourier import FourierMap
from app.core.spec import MapSpec

FeatureMap = FourierMap | ConsistentSamplingMap


def family(spec: MapSpec) -> type[FourierMap] | type[ConsistentSamplingMap]:
    """The kind of map a spec names."""
    return ConsistentSamplingMap if spec.kernel.kind == "gmm" else FourierMap


__all__ = ["Arrays", "Built", "ConsistentSamplingMap", "FeatureMap", "FourierMap", "family"]
