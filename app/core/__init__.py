"""The science: kernels, samplers, feature maps and hashes. No web framework, no Redis."""

from app.core.threads import one_thread_for_linear_algebra

one_thread_for_linear_algebra()
