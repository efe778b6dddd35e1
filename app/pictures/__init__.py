"""Drawings as pictures in SVG. `svg` is imported with the first picture: Matplotlib takes half a second and 40 MB."""

MEDIA_TYPE = "image/svg+xml"
