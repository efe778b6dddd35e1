"""Drawings as SVG and PNG. `figures` is imported with the first picture: Matplotlib takes half a second and 40 MB."""

SVG = "image/svg+xml"
"""Transparent, with text and axes in the colour of the page, light or dark."""
PNG = "image/png"
"""On white."""
