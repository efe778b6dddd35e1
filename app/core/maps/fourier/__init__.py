"""Maps of shift-invariant kernels by Fourier features: columns are cosines and sines of projected rows."""
