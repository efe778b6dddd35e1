"""The kernel and the sampler of a spec with frequencies, and what a dtype does to frequencies and weights."""

import numpy as np

from app.core.arrays import Matrix
from app.core.errors import InvalidInput
from app.core.kernels.base import ShiftInvariantKernel
from app.core.maps.terms import Arrays, BaseSpec, Dtype
from app.core.samplers.base import FrequencySampler
from app.core.samplers.learning import LearningFields
from app.core.samplers.uploaded import Uploaded


def spectral(spec: BaseSpec) -> tuple[ShiftInvariantKernel, FrequencySampler]:
    """The kernel and the sampler of a spec, which have frequencies; InvalidInput if the kernel has none."""
    kernel, sampler = spec.kernel, spec.sampler
    if not isinstance(sampler, FrequencySampler):
        raise TypeError(f"sampler {sampler.kind} draws no frequencies")
    if not isinstance(kernel, ShiftInvariantKernel):
        raise InvalidInput(
            f"kernel {kernel.kind} has no frequencies for sampler {sampler.kind}; its sampler is {kernel.served_by}",
            "/sampler/kind",
        )
    return kernel, sampler


def check_arrays(spec: BaseSpec, arrays: Arrays) -> None:
    """Raise InvalidInput for frequencies outside the range of the dtype, or weights whose sum makes features 0 or ∞."""
    kind = spec.dtype.value
    kernel, sampler = spectral(spec)
    is_uploaded = isinstance(sampler, Uploaded)
    if not np.isfinite(arrays["frequencies"]).all():
        if is_uploaded:
            raise InvalidInput(f"a frequency is outside the range of {kind}", "/sampler/frequencies")
        raise kernel.out_of_range(kind)
    with np.errstate(over="ignore"):  # an infinite sum is refused below
        total = float(np.abs(arrays["weights"]).sum(dtype=np.float64))
    if not 0 < total < float(np.finfo(spec.numpy_dtype).max) / 4:
        if sampler.learns:
            on_box = isinstance(sampler, LearningFields) and not sampler.on_rows
            raise InvalidInput(
                f"the learned weights sum to {total:.3g} in {kind}, the kernel being nearly 0 where fitted: take "
                + ("a smaller box_scale" if on_box else "rows nearer each other, or a wider kernel"),
                "/sampler/box_scale" if on_box else "/sampler/dataset",
            )
        raise InvalidInput(
            f"the sizes of the weights sum to {total:.3g} in {kind}; more than 0, and less than it can hold, is wanted",
            "/sampler/weights" if is_uploaded else "/kernel/weights",
        )


def lost_digits(spec: BaseSpec, largest: Matrix) -> tuple[str, ...]:
    """A warning where frequencies lose digits in the dtype; `largest`, (d,), are the largest of each coordinate.

    What is smaller than the least normal number is a multiple of the least of all, whatever its size.
    """
    least = float(np.finfo(spec.numpy_dtype).tiny)
    lost = int(((largest > 0) & (largest < least)).sum())
    if not lost:
        return ()
    return (
        f"the frequencies of {lost} of {len(largest)} coordinates are below {least:.1e}, where {spec.dtype.value} has "
        f"fewer digits: {spectral(spec)[0].scale_field} is out of proportion; "
        + ("take dtype float64, or " if spec.dtype is Dtype.float32 else "")
        + "give rows in a larger unit",
    )
