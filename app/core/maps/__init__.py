"""Feature maps: built once from a spec into named arrays, opened from those arrays, applied many times.

A new family is a file or folder of its own, with its samplers, and its class in `FAMILIES`.
"""

from functools import partial

from app.core.arrays import Rows
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps.base import FeatureMap
from app.core.maps.consistent_sampling import ConsistentSamplingMap
from app.core.maps.fourier.fourier_map import FourierMap
from app.core.maps.landmarks.landmark_map import LandmarkMap
from app.core.maps.terms import Arrays, BaseSpec, Built, Gives, Spectrum
from app.core.samplers.base import AnySampler

__all__ = ["BaseSpec", "ConsistentSamplingMap", "FeatureMap", "FourierMap", "Gives", "Spectrum"]

FAMILIES: list[type[FeatureMap]] = [FourierMap, ConsistentSamplingMap, LandmarkMap]


def family_of(sampler: AnySampler) -> type[FeatureMap]:
    """The family whose maps a sampler builds."""
    return next(family for family in FAMILIES if isinstance(sampler, family.samplers))


def opened(spec: BaseSpec, arrays: Arrays, threads: int = 1) -> FeatureMap:
    """The map of a spec and its frozen arrays, ready for use; its calls use up to `threads` threads of their own."""
    return family_of(spec.sampler)(spec, arrays, threads)


def build(spec: BaseSpec, building: Building | None = None) -> Built:
    """The arrays of a map, as its family builds them; samplers see the rows of datasets after the input of the spec."""
    building = building or Building()
    return family_of(spec.sampler).build(spec, building._replace(rows=partial(_rows_after_input, spec, building)))


def made(spec: BaseSpec, building: Building | None = None) -> FeatureMap:
    """A map that is built and opened at once, and uses as many threads as its building; raises what `build` does."""
    building = building or Building()
    return opened(spec, build(spec, building).arrays, building.threads)


def _rows_after_input(spec: BaseSpec, building: Building, dataset: str, pointer: str) -> Rows:
    found = building.rows(dataset, pointer)
    if spec.input is None:
        return found
    try:
        return spec.gate(found, "")
    except InvalidInput as error:
        raise InvalidInput(f"dataset {dataset!r}: {error.detail}", pointer) from None
