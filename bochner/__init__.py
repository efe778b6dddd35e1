"""Feature maps without a service: the computations of the service, run in this process.

    letters = bochner.load("letters.npz")
    features = letters.transform(rows)

Everything is computed by the code of the service itself, so that results are those of the service, bit for bit.
"""

from app.core.building import Building
from app.core.errors import InvalidInput, InvalidOption
from app.core.hashing.encodings import BitsOf, Encoder, Encoding, encoder
from app.core.maps import FeatureMap
from app.core.maps import make_map as made
from app.core.maps import open_map as opened
from app.core.maps.terms import Dtype, Form
from app.core.spec import MapSpec
from bochner.maps import Map, build, load

__all__ = [
    "BitsOf",
    "Building",
    "Dtype",
    "Encoder",
    "Encoding",
    "FeatureMap",
    "Form",
    "InvalidInput",
    "InvalidOption",
    "Map",
    "MapSpec",
    "build",
    "encoder",
    "load",
    "made",
    "opened",
]
