"""The experiments of the four papers, each measured through a running service."""
