"""Which map to take: samplers and sizes tried on a client's rows, and ranked."""
