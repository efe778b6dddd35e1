"""Mathematical core: kernels, samplers, feature maps and hash codes. Depends on no web framework and not on Redis."""

import os

from threadpoolctl import threadpool_limits

# From now on every BLAS product runs on the thread that calls it. The limit is permanent: a temporary one applies to
# the whole process, and two that overlap leave the wrong number of threads behind. With several threads sums would also
# round differently, and idle BLAS threads spin.
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for libraries that are loaded later: they start no threads
threadpool_limits(1, "blas")  # for libraries that are loaded already
