"""The family of landmark maps."""
