"""Feature maps: built once from a spec into named arrays, opened from those arrays, applied many times.

A new family takes a file or folder of its own, with its samplers, and the entry of its class in `FAMILIES`.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np

from app.core.arrays import Array, Rows, complete
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.maps.base import FeatureMap
from app.core.maps.consistent_sampling import ConsistentSamplingMap
from app.core.maps.dart_minhash import DartMinHashMap
from app.core.maps.fourier.fourier_map import FourierMap
from app.core.maps.landmarks.landmark_map import LandmarkMap
from app.core.maps.terms import Arrays, BaseSpec, Built, Gives, Spectrum
from app.core.samplers.base import AnySampler

__all__ = ["BaseSpec", "ConsistentSamplingMap", "DartMinHashMap", "FeatureMap", "FourierMap", "Gives", "Spectrum"]

FAMILIES: list[type[FeatureMap]] = [FourierMap, ConsistentSamplingMap, DartMinHashMap, LandmarkMap]


def family_of(sampler: AnySampler) -> type[FeatureMap]:
    """Return the family that builds the maps of a sampler."""
    return next(family for family in FAMILIES if isinstance(sampler, family.samplers))


def open_map(spec: BaseSpec, arrays: Arrays, threads: int = 1) -> FeatureMap:
    """Open the map of a spec and its frozen arrays; each of its calls uses up to `threads` threads of its own."""
    return family_of(spec.sampler)(spec, arrays, threads)


def build(spec: BaseSpec, building: Building | None = None) -> Built:
    """Build the arrays of a map by its family; samplers see rows of datasets after preprocessing (`input`)."""
    building = building or Building()
    return family_of(spec.sampler).build(spec, building._replace(rows=partial(_rows_after_input, spec, building)))


def make_map(spec: BaseSpec, building: Building | None = None) -> FeatureMap:
    """Build a map and open it; its calls use as many threads as the build. Raises what `build` raises."""
    building = building or Building()
    return open_map(spec, build(spec, building).arrays, building.threads)


def derived_arrays(spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
    """Return the arrays besides the frozen ones that results are computed with: the family's, and those of `input`."""
    found = family_of(spec.sampler).derived_arrays(spec, arrays)
    if spec.input is None:
        return found
    of_input = {"input_center": spec.input.center, "input_scale": spec.input.scale}
    return found | {name: np.array(numbers, np.float64) for name, numbers in of_input.items()}


def _rows_after_input(spec: BaseSpec, building: Building, dataset: str, pointer: str) -> Rows:
    found = building.rows(dataset, pointer)
    try:
        return complete(found, "") if spec.input is None else spec.gate(found, "")
    except InvalidInput as error:
        raise InvalidInput(f"dataset {dataset!r}: {error.detail}", pointer) from None
