"""What a map is drawn from: the frequencies of every summand of its kernel, from its one sampler, and offsets."""

from typing import Any

import numpy as np

from app.core.arrays import Floats
from app.core.errors import InvalidInput
from app.core.kernels.base import ShiftInvariantKernel
from app.core.maps.base import Arrays
from app.core.run import Alone, Run
from app.core.samplers.base import FrequencySampler, FrequencySet
from app.core.spec import Form, MapSpec, of_share, shares


def frequency_set(spec: MapSpec, rng: np.random.Generator, run: Run) -> FrequencySet:
    """The frequencies of every summand of the kernel, 0 on coordinates it does not look at.

    Several summands share one generator, so that none of them can be gone on with alone: only a single one is given
    `run`.
    """
    if not isinstance(spec.kernel, ShiftInvariantKernel) or not isinstance(spec.sampler, FrequencySampler):
        raise TypeError(f"sampler {spec.sampler.kind} draws no frequencies")
    sets, told = [], {}
    every = shares(spec)
    watched = run if len(every) == 1 else Alone()
    for share in every:
        block, dim = share.block, share.block.dim(spec.input_dim)
        try:
            drawn = spec.sampler.long_frequency_set(block.kernel, share.size, dim, rng, watched)
        except InvalidInput as error:
            raise InvalidInput(of_share(error.detail, share, every, spec), error.pointer) from None
        # Summands of one size have the same to tell, and there may be thousands.
        if (dim, share.size) not in told:
            told[dim, share.size] = [of_share(warning, share, every, spec) for warning in drawn.warnings]
        frequencies = drawn.frequencies
        if block.coordinates is not None:
            frequencies = np.zeros((len(drawn.weights), spec.input_dim))
            frequencies[:, block.coordinates] = drawn.frequencies
        sets.append(FrequencySet(frequencies, drawn.weights * block.weight))
    if len(sets) == 1:
        frequencies, weights, _ = sets[0]
    else:
        frequencies, weights = (np.concatenate(parts) for parts in list(zip(*sets, strict=True))[:2])
    warnings = [*spec.kernel.warnings()]
    warnings += dict.fromkeys(warning for of_size in told.values() for warning in of_size)
    warnings += spec.sampler.form_warnings(spec.form is not Form.complex)
    if spec.s is not None and len(weights) != spec.s:
        warnings.append(f"{spec.sampler.kind} dictates {len(weights)} frequencies; s = {spec.s} was not used")
    return FrequencySet(frequencies, weights, tuple(warnings))


def check_arrays(spec: MapSpec, arrays: Arrays) -> None:
    """Raise InvalidInput for frequencies (s, d) and weights (s,) of a map that left the range of its dtype.

    Of weights, that is a sum that makes features of 0 or infinity.
    """
    kind = spec.dtype.value
    if not np.isfinite(arrays["frequencies"]).all() and isinstance(spec.kernel, ShiftInvariantKernel):
        if spec.sampler.kind == "uploaded":
            raise InvalidInput(f"a frequency is outside the range of {kind}", "/sampler/frequencies")
        raise spec.kernel.out_of_range(kind)
    with np.errstate(over="ignore"):  # an infinite sum is refused below
        total = float(np.abs(arrays["weights"]).sum(dtype=np.float64))
    if not 0 < total < float(np.finfo(spec.numpy_dtype).max) / 4:
        raise InvalidInput(
            f"the sizes of the weights sum to {total:.3g} in {kind}; more than 0, and less than it can hold, is wanted",
            "/sampler/weights" if spec.sampler.kind == "uploaded" else "/kernel/weights",
        )


def uniform_angles(n: int, dtype: np.dtype[Any], rng: np.random.Generator) -> Floats:
    """Draw n angles in [0, 2π): those that round up to 2π in the dtype are the angle 0."""
    angles = (2 * np.pi * rng.random(n)).astype(dtype)
    angles[angles >= 2 * np.pi] = 0
    return angles
