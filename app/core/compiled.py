"""How inner loops are compiled."""

from numba import njit

# Without the interpreter lock; kept on disk for the next process. No fast-math, so that the same input gives the same
# bits everywhere. Division by zero gives infinity as in NumPy: a test for it would keep loops from being vectorised.
compiled = njit(nogil=True, cache=True, error_model="numpy")
