"""Recommendations of maps: samplers and sizes are tried on a client's rows, and ranked."""
