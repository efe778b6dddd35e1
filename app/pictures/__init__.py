"""Drawings as pictures in SVG."""

from app.pictures.svg import MEDIA_TYPE, svg

__all__ = ["MEDIA_TYPE", "svg"]
