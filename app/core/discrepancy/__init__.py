"""The box discrepancy of frequency sets and its gradient, on which samplers and diagnostics both stand."""
