"""Maps of shift-invariant kernels, whose columns are waves: Fourier features."""
