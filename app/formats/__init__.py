"""The formats of vectors and answers: bytes to arrays and back. A new one is a file of its own and its name here."""

from app.formats.base import Body, Format, Posted
from app.formats.json import Json
from app.formats.npy import Npy

FORMATS: dict[str, Format] = {form.media_type: form for form in (Json(), Npy())}
"""By media type; the first is the answer to a client that states no preference."""

__all__ = ["FORMATS", "Body", "Format", "Posted"]
