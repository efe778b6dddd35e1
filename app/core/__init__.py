"""The science: kernels, samplers, feature maps and hashes. No web framework, no Redis."""
