"""What became of the papers' claims: each verdict is worked out from the figures that are kept."""
