"""Kernels, boxes and frequency sets that several tests measure."""

import numpy as np
from numpy.typing import NDArray

from app.core.kernels.base import ProductKernel
from service_tests.core.specs import PRODUCT_KERNELS, kind, product_kernel

Matrix = NDArray[np.float64]
KINDS = tuple(kind(model) for model in PRODUCT_KERNELS)

# Ranges of the 21 columns of the cpu data (computer activity, 8192 rows), in the columns' own units.
CPU_BOX = np.array(
    (
        *(1845, 575, 12384, 5312, 5449, 20.12, 59.56, 2526371, 1800125, 81.44, 184.2),
        *(523, 1237, 211.58, 141.2, 292.61, 899.8, 1364.8, 2822, 11972, 2243185),
    )
)
CPU_SIGMA = 0.6 * 2526371


def drawn(kernel: ProductKernel, s: int, d: int, seed: int) -> Matrix:
    """Independent frequencies of the kernel's law."""
    return kernel.frequencies(np.random.default_rng(seed).random((s, d)))


def example(name: str, s: int, d: int, seed: int = 1) -> tuple[ProductKernel, Matrix, Matrix, Matrix]:
    """A kernel with a length scale per coordinate, a box, frequencies of its law, and weights of both signs."""
    rng = np.random.default_rng(seed)
    scales = rng.uniform(0.5, 2, size=d)
    kernel = product_kernel(name, scales.tolist())
    weights = rng.normal(1 / s, 0.5 / s, size=s)
    return kernel, scales * rng.uniform(0.3, 2.5, size=d) / max(1, d / 10), drawn(kernel, s, d, seed), weights
