"""Bochner: a REST microservice that turns vectors into kernel features and hash codes."""
