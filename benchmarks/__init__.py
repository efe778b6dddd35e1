"""Measurements: against peers in the same run, and the papers' tables. Nothing here passes or fails."""
