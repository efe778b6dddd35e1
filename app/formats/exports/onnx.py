"""The ONNX format: a Fourier map as a graph of operators, with which any runtime computes its features."""

from importlib.metadata import version

from app.core.errors import InvalidOption
from app.core.maps.terms import TakenMap
from app.formats.base import Encoded
from app.formats.exports.base import MapFile
from app.formats.exports.fourier_graph import fourier_graph
from app.formats.exports.onnx_graph import OPSET

# Longer messages are read by no library of Protocol Buffers.
_MOST_BYTES = (1 << 31) - 1


class Onnx(MapFile):
    """A graph with the input `vectors`, and the output `features` or, of the form complex, `real` and `imag`."""

    media_type = "application/octet-stream"
    described = (
        f"onnx: a graph of opset {OPSET}, for maps with frequencies. Its input `vectors`, (rows, input_dim), is in the "
        "map's dtype, or float64 where the map has an `input`. Its output is `features`, (rows, n_output); of the form "
        "complex there are two, `real` and `imag`, (rows, n_frequencies). Spec and digest are in its metadata."
    )

    def write(self, taken: TakenMap) -> Encoded:
        """Write the graph; InvalidOption for a map without frequencies, or for more bytes than the format takes."""
        if "amplitudes" not in taken.arrays:
            raise InvalidOption(
                f"a map with sampler {taken.spec.sampler.kind} has no frequencies, and onnx is for those that have; "
                "npz and safetensors hold every map",
                "format",
            )
        model = fourier_graph(taken.spec, taken.arrays).model(version("bochner"), taken.told)
        if model.nbytes > _MOST_BYTES:
            raise InvalidOption(
                f"the onnx file would have {model.nbytes} bytes; {_MOST_BYTES} are the most that the format takes, and "
                "safetensors and npz take any number",
                "format",
            )
        return Encoded(model.pieces(), model.nbytes)
