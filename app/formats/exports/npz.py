"""The .npz format: a zip of arrays as NumPy saves them, which NumPy alone reads."""

import numpy as np

from app.core.maps.terms import TakenMap
from app.formats.base import Encoded
from app.formats.exports.base import MapFile
from app.formats.zipped import length, written


class Npz(MapFile):
    """Arrays by name, and as arrays of bytes what is told of the map beside them."""

    media_type = "application/zip"
    described = "npz: the arrays; `spec`, `digest` and `parameter_stream` are members too, of bytes."

    def write(self, taken: TakenMap) -> Encoded:
        """Write the arrays one after the other."""
        told = {name: np.array(text.encode()) for name, text in taken.told.items()}
        members = {**told, **taken.arrays}
        return Encoded(written(members), length(members))
