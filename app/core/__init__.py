"""The science: kernels, samplers, feature maps and hashes. No web framework, no Redis."""

import os

from threadpoolctl import threadpool_limits

# Every product of this process runs on the thread that asks for it, from now on. A limit for some time only is a limit
# of the whole process, and two such times that overlap leave the wrong number behind. With several threads sums would
# also round differently, and idle threads of the library spin.
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for libraries that are loaded later: they start no threads
threadpool_limits(1, "blas")  # for those that are loaded already
