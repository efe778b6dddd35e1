"""How the frequencies of a map are shared out among the summands of its kernel, and what is refused of that."""

from typing import NamedTuple

from app.core.errors import InvalidInput
from app.core.kernels.base import Block, ShiftInvariantKernel
from app.core.maps.terms import BaseSpec
from app.core.samplers.base import FrequencySampler, SizeAdvice
from app.core.samplers.uploaded import Uploaded


class Allocation(NamedTuple):
    """A summand of the kernel, and how many frequencies it gets."""

    block: Block
    size: int


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


def allocations(spec: BaseSpec) -> list[Allocation]:
    """The summands of a spectral kernel with their numbers of frequencies: s shared out evenly, or a rule's own count.

    Raises:
        InvalidInput: there are fewer frequencies than summands.
    """
    kernel, sampler = spectral(spec)
    blocks = kernel.blocks(spec.input_dim)
    each, left = divmod(spec.s or 0, len(blocks))
    found = [
        Allocation(block, sampler.count(spec.s and each + (i < left), block.dim(spec.input_dim)))
        for i, block in enumerate(blocks)
    ]
    if found[-1].size == 0:  # never with a count of the rule's own
        raise InvalidInput(f"s is {spec.s}; each of the {len(blocks)} subsets needs a frequency at least", "/s")
    return found


def check_allocations(spec: BaseSpec) -> None:
    """Ask the sampler whether it serves every summand of the kernel.

    Raises:
        InvalidInput: it does not; the detail names the rule and what would work.
    """
    kernel, sampler = spectral(spec)
    every = allocations(spec)
    # Summands of one size are alike to a sampler, and there may be thousands.
    alike = {(allocation.block.dim(spec.input_dim), allocation.size): allocation for allocation in every}
    if isinstance(sampler, Uploaded) and len(alike) > 1:
        raise InvalidInput(
            f"sampler uploaded serves each of the {len(every)} subsets with the same frequencies, so all must have "
            f"one size; they have from {min(alike)[0]} to {max(alike)[0]} coordinates: upload for subsets of one "
            "size, or take another sampler, for instance, sobol",
            "/sampler/kind",
        )
    if sampler.learns and every[0].block.coordinates is not None:
        raise InvalidInput(
            f"sampler {sampler.kind} learns a set for one kernel on all coordinates; kernel "
            f"{kernel.kind} is a sum over subsets of them: sampler sobol works",
            "/sampler/kind",
        )
    # The largest summand first: what is enough for it is enough for all.
    for (dim, size), allocation in sorted(alike.items(), reverse=True, key=lambda item: item[0]):
        try:
            sampler.check(allocation.block.kernel, size, dim)
        except InvalidInput as error:
            raise InvalidInput(of_allocation(error.detail, allocation, every, spec), error.pointer) from None


def of_allocation(text: str, allocation: Allocation, every: list[Allocation], spec: BaseSpec) -> str:
    """A sampler's text about one allocation; of several, it also says which, and what is better for all of them."""
    if len(every) == 1:
        return str(text)
    s = sum(other.size for other in every)
    if isinstance(text, SizeAdvice):
        alike = sum(other.size == allocation.size for other in every)
        which = (
            f"each of the {alike} subsets gets" if alike == len(every) else f"{alike} of the {len(every)} subsets get"
        )
        return f"{which} {allocation.size} of the s = {s} frequencies: {text.for_each_of(len(every))}"
    gets = f" with {allocation.size} of the s = {s} frequencies" if s == spec.s else ""
    return f"on a subset of {allocation.block.dim(spec.input_dim)} coordinates{gets}: {text}"
