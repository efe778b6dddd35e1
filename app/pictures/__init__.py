"""Findings as pictures in SVG."""

from app.pictures.gram import gram_picture
from app.pictures.max_error import max_error_picture
from app.pictures.recommendations import recommendations_picture

__all__ = ["gram_picture", "max_error_picture", "recommendations_picture"]
