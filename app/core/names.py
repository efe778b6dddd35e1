"""Display names of kernels, samplers and maps, for titles and legends of figures."""

from typing import Any

# Longest name that fits above a figure.
_MOST_LETTERS = 48
_NUMBERS = ("nu", "alpha", "degree", "p", "length_scale", "gamma")
NAMED_OF_KERNELS = {"kind", *_NUMBERS}
"""Fields of kernels that display names are made of; numeric fields only if they hold one number."""
_SIZES = ("level", "degree", "points_per_dim")
NAMED_OF_SAMPLERS = {"kind", "base", *_SIZES}
"""Fields of samplers that display names are made of."""


def kernel_name(kernel: dict[str, Any]) -> str:
    """Return a name such as "gaussian, length_scale 5": the kernel's kind and its numbers, without lists of numbers."""
    numbers = [f"{name} {kernel[name]:.3g}" for name in _NUMBERS if isinstance(kernel.get(name), int | float)]
    return ", ".join([str(kernel["kind"]), *numbers])


def sampler_name(sampler: dict[str, Any]) -> str:
    """Return a name such as "moment_matching over halton": kind, size of a rule, and kind of the base."""
    size = next((f" {sampler[name]}" for name in _SIZES if sampler.get(name)), "")
    base = sampler.get("base")
    return f"{sampler['kind']}{size}" + (f" over {base['kind']}" if base else "")


def map_name(name: str, kernel: dict[str, Any], sampler: dict[str, Any], s: int) -> str:
    """Return the title of figures of a map: its name, kernel, sampler and size."""
    return f"{shorten(name)}: {kernel_name(kernel)}; {sampler_name(sampler)}, s = {s:,}"


def shorten(name: str) -> str:
    """Return a name, with its middle left out if it is long."""
    half = _MOST_LETTERS // 2
    return name if len(name) <= _MOST_LETTERS else f"{name[:half]}…{name[-half:]}"
