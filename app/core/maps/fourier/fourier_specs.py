"""What specs of Fourier maps ask for: what is frozen and drawn, how large, and by which samplers."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from app.core.arrays import Array
from app.core.building import Building
from app.core.errors import InvalidInput
from app.core.hashing.signed_codes import SIGNED
from app.core.kernels.base import AnyKernel, ShiftInvariantKernel
from app.core.maps.base import FeatureMap
from app.core.maps.fourier.dense import DenseProjection
from app.core.maps.fourier.drawing import allocations, check_allocations, drawn, unequal
from app.core.maps.fourier.forms import FORMS, amplitudes
from app.core.maps.fourier.projection import Projection
from app.core.maps.fourier.spectral import spectral
from app.core.maps.fourier.structured import StructuredProjection
from app.core.maps.terms import Arrays, BaseSpec, Built, Fetched, FrozenArray, Gives
from app.core.samplers import FREQUENCY_SAMPLERS
from app.core.samplers.base import AnySampler, FrequencySampler
from app.core.samplers.structured_orthogonal import StructuredOrthogonal

_PROJECTIONS: dict[type[AnySampler], type[Projection]] = {StructuredOrthogonal: StructuredProjection}
"""The projections of samplers that do not freeze a matrix of frequencies."""


class FourierSpecs(FeatureMap):
    """The class of Fourier maps, as far as specs tell: maps themselves are of `FourierMap`."""

    samplers = FREQUENCY_SAMPLERS
    gives = frozenset({Gives.features, Gives.frequencies, Gives.codes})
    usual_encoders = (SIGNED,)
    fetched = MappingProxyType(
        {
            "frequencies": Fetched(2, "the frequencies, (n_frequencies, input_dim)."),
            "weights": Fetched(1, "the weights of the frequencies, (n_frequencies,)."),
            "signs": Fetched(3, "the signs of sampler structured_orthogonal, uint8 (blocks, 3, D/8), a bit for each."),
            "radii": Fetched(1, "the lengths of sampler structured_orthogonal, (n_frequencies,), at length scale 1."),
            "offsets": Fetched(1, "the offsets of the form phase, (n_frequencies,) in [0, 2π)."),
            "signature": Fetched(1, "the signs ±1 of the weights, (n_frequencies,), of a map that has negative ones."),
        }
    )

    @classmethod
    def check(cls, spec: BaseSpec) -> None:
        """Refuse a kernel without frequencies, and one with a summand that the sampler does not serve."""
        check_allocations(spec)

    @classmethod
    def size_for(cls, sampler: AnySampler, columns: int, input_dim: int) -> int | None:
        """Half as many frequencies as columns, or as many as the sampler makes best use of below that."""
        if not isinstance(sampler, FrequencySampler):
            raise TypeError(f"sampler {sampler.kind} draws no frequencies")
        most = columns // 2
        try:
            dictated = sampler.count(None, input_dim)
        except InvalidInput:
            return sampler.best_size(most)
        if dictated > most:
            raise InvalidInput(
                f"{sampler.kind} may make {dictated} frequencies; {columns} columns have room for {most}"
            )
        return None

    @classmethod
    def tried(cls, kernel: AnyKernel, input_dim: int, columns: int, dataset: str | None) -> tuple[AnySampler, ...]:
        """Those with room for half as many frequencies as columns; none for kernels without frequencies."""
        if not isinstance(kernel, ShiftInvariantKernel):
            return ()
        return super().tried(kernel, input_dim, columns // 2, dataset)

    @classmethod
    def frozen(cls, spec: BaseSpec) -> dict[str, FrozenArray]:
        """The arrays of the projection, weights, signature, and offsets for the form `phase`."""
        s = sum(allocation.size for allocation in allocations(spec))
        of_each = FrozenArray((s,), spec.numpy_dtype)
        arrays = projection_of(spec).frozen(spec, s)
        if projection_of(spec).is_dense:
            arrays |= {"weights": of_each, "signature": FrozenArray((s,), np.dtype(np.int8))}
        if FORMS[spec.form].has_offsets:
            arrays["offsets"] = of_each
        return arrays

    @classmethod
    def largest(cls, spec: BaseSpec) -> tuple[int, int]:
        """What the sampler makes at the most, for all summands of the kernel."""
        s = sum(allocation.size for allocation in allocations(spec))
        return s, s * FORMS[spec.form].per_frequency

    @classmethod
    def derived(cls, spec: BaseSpec, arrays: Mapping[str, Array]) -> Arrays:
        """The `amplitudes` of the frequencies, and what the projection makes phases with."""
        projection = projection_of(spec)
        of_form = amplitudes(spec, projection.weights(spec, arrays))
        return {"amplitudes": of_form, **projection.derived(spec, arrays)}

    @classmethod
    def drawing_bytes(cls, spec: BaseSpec) -> int:
        """What is frozen, and the sampler at the largest summand of the kernel, or the open projection.

        The sets of several summands are put together in float64.
        """
        _, sampler = spectral(spec)
        every = allocations(spec)
        s = sum(allocation.size for allocation in every)
        most = max(sampler.drawing_bytes(allocation.size, allocation.block.dim(spec.input_dim)) for allocation in every)
        together = 2 * 8 * s * spec.input_dim if len(every) > 1 else 0
        return cls.frozen_bytes(spec) + max(most + together, projection_of(spec).opening_bytes(spec, s))

    @classmethod
    def build(cls, spec: BaseSpec, building: Building | None = None) -> Built:
        """Draw frequencies and offsets."""
        return drawn(spec, projection_of(spec), building or Building())

    @classmethod
    def given(cls, spec: BaseSpec) -> frozenset[Gives]:
        """No codes where weights differ."""
        return cls.gives if unequal(spec) is None else cls.gives - {Gives.codes}


def projection_of(spec: BaseSpec) -> type[Projection]:
    """The projection whose arrays the sampler of a spec draws."""
    return _PROJECTIONS.get(type(spec.sampler), DenseProjection)
