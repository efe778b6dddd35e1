"""Feature maps: built once from a spec into named arrays, opened from those arrays, applied many times.

A new family is a file or folder of its own, with its samplers, and its class in `FAMILIES`.
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
    """The family whose maps a sampler builds."""
    return next(family for family in FAMILIES if isinstance(sampler, family.samplers))


def open_map(spec: BaseSpec, arrays: Arrays, threads: int = 1) -> FeatureMap:
    """The map of a spec and its frozen arrays, ready for use; its calls use up to `threads` threads of their own."""
    return family_of(spec.sampler)(spec, arrays, threads)


def build(spec: BaseSpec, building: Building | None = None) -> Built:
    """The arrays of a map, as its family builds them; samplers see the rows of datasets after the input of the spec."""
    building = building or Building()
    return family_of(spec.sampler).build(spec, building._replace(rows=partial(_rows_after_input, spec, building)))


def make_map(spec: BaseSpec, building: Building | None = None) -> FeatureMap:
    """A map that is built and opened at once, and uses as many threads as its building; raises what `build` does."""
    building = building or Building()
    return open_map(spec, build(spec, building).arrays, building.threads)


def derived_arrays(spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
    """Arrays that results are made with beside the frozen ones: those of the family, and the numbers of the input."""
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
