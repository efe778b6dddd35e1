"""The frequencies of a whole spec: every summand of its kernel, from its one sampler."""

import numpy as np

from app.core.samplers.base import FrequencySampler, FrequencySet
from app.core.spec import Form, MapSpec, shares


def frequency_set(spec: MapSpec, rng: np.random.Generator) -> FrequencySet:
    """The frequencies of every summand of the kernel, 0 on coordinates it does not look at."""
    if not isinstance(spec.sampler, FrequencySampler):
        raise TypeError(f"sampler {spec.sampler.kind} draws no frequencies")
    sets = []
    for block, size in shares(spec):
        drawn = spec.sampler.frequency_set(block.kernel, size, block.dim(spec.input_dim), rng)
        frequencies = drawn.frequencies
        if block.coordinates is not None:
            frequencies = np.zeros((len(drawn.weights), spec.input_dim))
            frequencies[:, block.coordinates] = drawn.frequencies
        sets.append(FrequencySet(frequencies, drawn.weights * block.weight, drawn.warnings))
    if len(sets) == 1:
        frequencies, weights, _ = sets[0]
    else:
        frequencies, weights = (np.concatenate(parts) for parts in list(zip(*sets, strict=True))[:2])
    # Summands of one size have the same to tell.
    warnings = list(dict.fromkeys(warning for drawn in sets for warning in drawn.warnings))
    warnings += spec.sampler.form_warnings(spec.form is not Form.complex)
    if spec.s is not None and len(weights) != spec.s:
        warnings.append(f"{spec.sampler.kind} dictates {len(weights)} frequencies; s = {spec.s} was not used")
    return FrequencySet(frequencies, weights, tuple(warnings))
