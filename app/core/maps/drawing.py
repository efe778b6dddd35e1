"""The frequencies of a whole spec: every summand of its kernel, from its one sampler."""

import numpy as np

from app.core.errors import InvalidInput
from app.core.kernels.base import ShiftInvariantKernel
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
