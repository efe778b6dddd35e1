"""Specs as a client writes them, and what stands behind them."""

import json
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from app.core.arrays import Rows
from app.core.errors import InvalidInput
from app.core.hashing.encodings import Codes, Encoder, Encoding
from app.core.kernels import Kernel
from app.core.kernels.base import ProductKernel, ShiftInvariantKernel
from app.core.maps import ConsistentSamplingMap, DartMinHashMap, FourierMap
from app.core.maps.weighted_minhash import WeightedMinHashMap
from app.core.samplers.points import Points
from app.core.spec import MapSpec, Sampler

KERNELS: tuple[type[Any], ...] = get_args(get_args(Kernel)[0])
SAMPLERS: tuple[type[Any], ...] = get_args(get_args(Sampler)[0])
POINTS: tuple[type[Any], ...] = get_args(get_args(Points)[0])
_KERNEL: TypeAdapter[Any] = TypeAdapter(Kernel)
_SAMPLER: TypeAdapter[Any] = TypeAdapter(Sampler)
PRODUCT_KERNELS = tuple(model for model in KERNELS if issubclass(model, ProductKernel))


def kind(model: type[Any]) -> str:
    """What a client writes for a registered model."""
    name: str = get_args(model.model_fields["kind"].annotation)[0]
    return name


def spec(**members: Any) -> MapSpec:
    """A map of vectors of four entries, with some members replaced."""
    default = {
        "input_dim": 4,
        "kernel": {"kind": "gaussian", "length_scale": 1.5},
        "sampler": {"kind": "monte_carlo"},
        "s": 64,
        "seed": 7,
    }
    return MapSpec.model_validate_json(json.dumps(default | members))


def gmm_spec(**members: Any) -> MapSpec:
    """As `spec`, of kernel gmm."""
    return spec(**{"kernel": {"kind": "gmm"}, "sampler": {"kind": "gcws"}, "dtype": "float64"} | members)


def refusal(**members: Any) -> InvalidInput:
    """What `spec` raises."""
    with pytest.raises(InvalidInput) as caught:
        spec(**members)
    return caught.value


def kernel(**fields: Any) -> Any:
    """A kernel by its fields."""
    return _KERNEL.validate_json(json.dumps(fields))


def product_kernel(kind: str, length_scale: float | list[float]) -> ProductKernel:
    """A product kernel by its kind."""
    made = kernel(kind=kind, length_scale=length_scale)
    assert isinstance(made, ProductKernel)
    return made


def shift_invariant(of: MapSpec) -> ShiftInvariantKernel:
    """The kernel of a spec that has frequencies."""
    assert isinstance(of.kernel, ShiftInvariantKernel)
    return of.kernel


def sampler(**fields: Any) -> Any:
    """A sampler by its fields."""
    return _SAMPLER.validate_json(json.dumps(fields))


def fourier(**members: Any) -> FourierMap:
    """A map built from `spec`."""
    made = spec(**members)
    return FourierMap(made, FourierMap.build(made).arrays)


def hashing(threads: int = 1, **members: Any) -> ConsistentSamplingMap:
    """The map of `gmm_spec`."""
    return ConsistentSamplingMap(gmm_spec(**members), threads=threads)


def darts(threads: int = 1, **members: Any) -> DartMinHashMap:
    """The map of `gmm_spec` by darts."""
    return DartMinHashMap(gmm_spec(sampler={"kind": "dart_minhash"}, **members), threads=threads)


def pairs(sampling: WeightedMinHashMap, rows: Rows) -> Codes:
    """Samples (i*, t*) of the rows, (n, s, 2), −1 for a row that has none."""
    return sampling.codes(rows, Encoder(Encoding.pairs, marked=True))


def zero_bit(sampling: WeightedMinHashMap, rows: Rows) -> Codes:
    """i* alone, (n, s), −1 for a row that has none."""
    return sampling.codes(rows, Encoder(Encoding.zero_bit, marked=True))
