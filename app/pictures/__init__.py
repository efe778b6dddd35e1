"""Figures as SVG and PNG. `figures` is imported for the first figure: Matplotlib takes half a second and 40 MB."""

SVG = "image/svg+xml"
"""Media type of transparent figures, with text and axes in a colour for light or dark pages."""
PNG = "image/png"
"""Media type of figures on white."""
