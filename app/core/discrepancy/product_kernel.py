"""The kernels that a box discrepancy is for: products over the coordinates."""

from app.core.errors import InvalidInput
from app.core.kernels.base import AnyKernel, ProductKernel, ShiftInvariantKernel


def product_kernel(kernel: AnyKernel, input_dim: int) -> ProductKernel:
    """The product of one-dimensional kernels that the kernel is for vectors of `input_dim` entries.

    Raises:
        InvalidInput: it is none.
    """
    if isinstance(kernel, ProductKernel):
        kernel.check(input_dim)
        return kernel
    if isinstance(kernel, ShiftInvariantKernel):
        kernel.check(input_dim)
        block = kernel.blocks(input_dim)[0]
        if block.coordinates is None and isinstance(block.kernel, ProductKernel):
            return block.kernel
    raise InvalidInput(
        f"kernel {kernel.kind} is no product of one-dimensional kernels, as the box discrepancy wants; "
        "gaussian, laplacian, cauchy and correlation_rbf are",
        "/kernel",
    )
