"""File formats in which a map is exported.

A new format is one file with a class derived from `MapFile`, and its name in the list below.
"""

from app.formats.exports.files import MapFile, Npz, Safetensors
from app.formats.exports.onnx import Onnx

EXPORTS: dict[str, MapFile] = {"onnx": Onnx(), "safetensors": Safetensors(), "npz": Npz()}
"""All export formats by name, which is also the suffix of such files."""

__all__ = ["EXPORTS", "MapFile"]
