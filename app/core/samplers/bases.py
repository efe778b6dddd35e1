"""The base of a sampler that moves or weights the frequencies of another."""

from app.core.errors import InvalidInput
from app.core.kernels.base import SpectralKernel
from app.core.samplers.points import Points


def check_base(base: Points, kernel: SpectralKernel, s: int, input_dim: int) -> None:
    """Ask the base whether the combination has a meaning; its pointers become those of a base.

    Raises:
        InvalidInput: it has none, or the base is one that learns.
    """
    if base.learns:
        raise InvalidInput(f"a base is drawn, not learned: base {base.kind} takes no learn", "/sampler/base/learn")
    try:
        base.check(kernel, s, input_dim)
    except InvalidInput as error:
        raise InvalidInput(error.detail, error.pointer.replace("/sampler", "/sampler/base", 1)) from None
