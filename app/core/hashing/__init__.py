"""Generalized consistent weighted sampling: its random parameters, its loops, its encodings, its estimates."""
