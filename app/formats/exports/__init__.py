"""The files in which maps are taken away.

A new one is a file with a class derived from `MapFile`, and its name in the list below.
"""

from app.formats.exports.files import MapFile, Npz, Safetensors
from app.formats.exports.onnx import Onnx

EXPORTS: dict[str, MapFile] = {"onnx": Onnx(), "safetensors": Safetensors(), "npz": Npz()}
"""Every kind of file by its name, which is also how names of such files end."""

__all__ = ["EXPORTS", "MapFile"]
