"""Content codings (RFC 9110, 8.4): gzip and zstd, of bodies that come and of answers."""

import re
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Protocol

from fastapi import Request

from app.api.problems import Refusal
from app.core.errors import InvalidInput

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

IDENTITY = "identity"
_GZIP = 31
"""What zlib calls the format of gzip with its largest window."""
# Least work for what is gained: answers are made faster than a higher level packs them.
_LEVEL = 1
# What zstd may refer back to, as a power of two: 8 MB, as RFC 9659 has it.
_WINDOW = {int(zstd.DecompressionParameter.window_log_max): 23}
# What is unpacked at a time: some milliseconds.
_PART = 1 << 19
# Parts of a body that are packed by themselves. Each costs some microseconds, and may be empty.
_MOST_FRAMES = 4096
_MOST_CHARACTERS = 4096
_WEIGHT = re.compile(r"\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*", re.IGNORECASE)


class Packer(Protocol):
    """Packs an answer, piece by piece."""

    def compress(self, data: bytes | memoryview, /) -> bytes:
        """Take a piece; gives the packed bytes that are ready by now."""

    def flush(self) -> bytes:
        """End the answer; gives the packed bytes that were held back."""


PACKERS: dict[str, Callable[[], Packer]] = {
    "zstd": lambda: zstd.ZstdCompressor(level=_LEVEL),
    "gzip": lambda: zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP),
}
"""By the codings, the best first."""
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
    if coding in ("", IDENTITY):
        return None
    if coding not in _UNPACKERS:
        detail = f"Content-Encoding {came[:80]} came; one of {', '.join(_UNPACKERS)} is wanted, once, or none"
        raise Refusal("unsupported-media-type", detail, headers={"Accept-Encoding": ", ".join(_UNPACKERS)})
    return Unpacked(coding)


@lru_cache(64)
def wanted(accept_encoding: str) -> tuple[str, bool]:
    """The coding that a header prefers of an answer, the best of several that it likes equally; and whether it insists.

    It insists where it does not take an answer that is not packed. An answer that it takes in no way is not packed.
    """
    weights: dict[str, float] = {}
    for entry in accept_encoding[:_MOST_CHARACTERS].lower().split(","):
        name, _, parameter = entry.partition(";")
        weight = _WEIGHT.fullmatch(parameter)
        weights[name.strip().removeprefix("x-")] = float(weight[1]) if weight else 0.0 if parameter.strip() else 1.0
    others = weights.get("*", 0.0)
    plain = weights.get(IDENTITY, others if "*" in weights else None)
    best = max(PACKERS, key=lambda coding: weights.get(coding, others))
    quality = weights.get(best, others)
    if quality <= 0 or (plain is not None and plain > quality):
        return IDENTITY, False
    return best, plain == 0
