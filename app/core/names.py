"""Names of kernels, samplers and maps for people: titles and legends of pictures."""

from typing import Any

# Longer names would not fit above a picture.
_MOST_LETTERS = 48
_NUMBERS = ("nu", "alpha", "degree", "p", "length_scale", "gamma")
NAMED_OF_KERNELS = {"kind", *_NUMBERS}
"""The fields of kernels that their names are made of; of the numbers those that are one number."""
_SIZES = ("level", "degree", "points_per_dim")
NAMED_OF_SAMPLERS = {"kind", "base", *_SIZES}
"""The fields of samplers that their names are made of."""


def kernel_name(kernel: dict[str, Any]) -> str:
    """Such as "gaussian, length_scale 5": the kind of a kernel and its numbers, but for lists of them."""
    numbers = [f"{name} {kernel[name]:.3g}" for name in _NUMBERS if isinstance(kernel.get(name), int | float)]
    return ", ".join([str(kernel["kind"]), *numbers])


def sampler_name(sampler: dict[str, Any]) -> str:
    """Such as "moment_matching over halton": the kind of a sampler, that of its base, and a size of a rule."""
    size = next((f" {sampler[name]}" for name in _SIZES if sampler.get(name)), "")
    base = sampler.get("base")
    return f"{sampler['kind']}{size}" + (f" over {base['kind']}" if base else "")


def map_name(name: str, kernel: dict[str, Any], sampler: dict[str, Any], s: int) -> str:
    """What stands above pictures of a map: its name, kernel, sampler and size."""
    return f"{shorten(name)}: {kernel_name(kernel)}; {sampler_name(sampler)}, s = {s:,}"


def shorten(name: str) -> str:
    """A name with its middle left out where it is long."""
    half = _MOST_LETTERS // 2
    return name if len(name) <= _MOST_LETTERS else f"{name[:half]}…{name[-half:]}"
