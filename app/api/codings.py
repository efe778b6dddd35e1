"""Content codings (RFC 9110, 8.4): gzip and zstd of bodies that come, and which answers are not compressed."""

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from fastapi import Request
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES

from app.api.problems import Refusal
from app.core.errors import InvalidInput
from app.formats import FORMATS
from app.formats.json import Json

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

UNCOMPRESSED = (
    *DEFAULT_EXCLUDED_CONTENT_TYPES,
    "application/octet-stream",
    *(media_type for media_type in FORMATS if media_type != Json.media_type),
)
"""Media types of answers. To compress features saves a fourteenth, and takes longer than computing them."""
_GZIP = 31
"""What zlib calls the format of gzip with its largest window."""
# What zstd may refer back to, as a power of two: 8 MB, as RFC 9659 has it.
_WINDOW = {int(zstd.DecompressionParameter.window_log_max): 23}
# What is unpacked at a time: some milliseconds.
_PART = 1 << 19
# Parts of a body that are packed by themselves. Each costs some microseconds, and may be empty.
_MOST_FRAMES = 4096
_UNPACKERS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(_GZIP),
    "zstd": lambda: zstd.ZstdDecompressor(options=_WINDOW),
}


class Unpacked:
    """A body that is unpacked while it comes."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._unpacker = _UNPACKERS[coding]()
        self._n_frames = 0

    def parts(self, piece: bytes) -> Iterator[bytes]:
        """Unpack a piece, in parts of bounded size; InvalidInput if it is not packed so."""
        try:
            while piece:
                if self._unpacker.eof:
                    self._unpacker = _UNPACKERS[self._coding]()
                    self._n_frames += 1
                    if self._n_frames == _MOST_FRAMES:
                        raise InvalidInput(f"the body is {self._coding} of more than {_MOST_FRAMES} parts")
                part = self._unpacker.decompress(piece, _PART)
                yield part
                while len(part) == _PART and not self._unpacker.eof:  # it holds more of the same piece
                    part = self._unpacker.decompress(self._rest(), _PART)
                    yield part
                piece = self._unpacker.unused_data
        except (zlib.error, zstd.ZstdError) as error:
            raise InvalidInput(f"the body is not {self._coding}, as Content-Encoding says: {error}") from error

    def check_end(self) -> None:
        """Raise InvalidInput if there should be more."""
        if not self._unpacker.eof:
            raise InvalidInput(f"the body ends before its {self._coding} does")

    def _rest(self) -> bytes:
        """The end of a piece that zlib has not looked at yet and wants again; zstd keeps it itself."""
        return getattr(self._unpacker, "unconsumed_tail", b"")


def unpacked(request: Request) -> Unpacked | None:
    """How to unpack the body of a request; None if it is not packed. Refusal if it is packed otherwise, or twice."""
    came = ",".join(request.headers.getlist("content-encoding")).strip().lower()
    coding = came.removeprefix("x-")
    if coding in ("", "identity"):
        return None
    if coding not in _UNPACKERS:
        detail = f"Content-Encoding {came[:80]} came; one of {', '.join(_UNPACKERS)} is wanted, once, or none"
        raise Refusal("unsupported-media-type", detail, headers={"Accept-Encoding": ", ".join(_UNPACKERS)})
    return Unpacked(coding)
