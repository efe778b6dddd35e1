"""Content negotiation: formats of requests, and of answers with arrays, which are sent whole or in pieces."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from app.api.admission import HELD, Admission, Held, retrieve_failure
from app.api.interest import hung_up
from app.api.problems import Refusal
from app.core.arrays import Answer, dtype_of, held_bytes, shared_by
from app.formats import FORMATS, Format
from app.formats.base import Encoded
from app.formats.json import Json
from app.jobs.record import JobNotFound
from app.store.errors import Gone, StoreUnavailable

logger = logging.getLogger(__name__)

JSON = Json.media_type

# Up to a comma outside quotes; an unclosed quote counts as any other character.
_ENTRY = re.compile(r'(?:"[^"]*"|[^,])+')
# A header of thousands of entries takes thousands of steps, and a place in the cache.
_MOST_CHARACTERS = 4096
_DTYPE = re.compile(r'(?P<quote>"?)(?P<word>[^"]*)(?P=quote)')


def posted_format(request: Request, allowed: tuple[str, ...] = tuple(FORMATS)) -> Format:
    """Return the format that Content-Type names; raise Refusal unless it is one of `allowed`."""
    return FORMATS[posted_type(request, allowed)]


def posted_type(request: Request, allowed: Collection[str], absent: str = "") -> str:
    """Return the media type that Content-Type names, `absent` if there is none; raise what `posted_format` raises."""
    header = request.headers.get("content-type")
    media_type = (header or absent).partition(";")[0].strip().lower()
    if media_type not in allowed:
        came = f"Content-Type {header}" if header else "no Content-Type"
        remedy = "; read CSV with pandas or numpy, and send Parquet or .npy" if "csv" in media_type else ""
        raise Refusal("unsupported-media-type", f"expected {' or '.join(allowed)}, got {came}{remedy}")
    return media_type


class Wanted(NamedTuple):
    """How a client wants arrays: the header `Accept`, and formats in the order of preference among equals."""

    accept: str
    forms: tuple[Format, ...]

    def choose(self, dtype: np.dtype[Any]) -> tuple[Format, np.dtype[Any]]:
        """Return the format and dtype that Accept prefers for rows of this dtype; raise Refusal if it accepts none.

        Dtypes other than that of the rows are chosen only if Accept names them.
        """
        return _chosen(self, dtype)


@lru_cache(64)
def _chosen(wanted: Wanted, dtype: np.dtype[Any]) -> tuple[Format, np.dtype[Any]]:
    accept, own = wanted.accept, dtype.name
    quality = {(form, own): _quality(accept, form.media_type, own) for form in wanted.forms}
    for form in wanted.forms:
        for name in form.narrower.get(own, ()):
            quality[form, name] = _ranges(accept).get((form.media_type, name), 0.0)
    best = max(quality, key=quality.__getitem__)
    if quality[best] <= 0:
        written = (
            f"{form.media_type}{f'; dtype={name}' if name != own else f', which is {own} here,'}"
            for form, name in quality
        )
        raise Refusal("not-acceptable", f"expected Accept with {' or '.join(written)}, got {accept}")
    return best[0], np.dtype(best[1])


def wanted_format(request: Request, posted: Format | None = None) -> Wanted:
    """Return how to answer with arrays: by Accept; among equals the posted format comes first, without one JSON.

    Raises:
        Refusal: Accept allows no format.
    """
    default = posted.media_type if posted else JSON
    media_types = [default, *(other for other in FORMATS if other != default)]
    accept = _accept(request)
    named = {media_range for (media_range, _), weight in _ranges(accept).items() if weight > 0}
    if not any(named & {media_type, *_families(media_type)} for media_type in media_types):
        raise _not_acceptable(accept, media_types)
    return Wanted(accept, tuple(FORMATS[media_type] for media_type in media_types))


def favourite(request: Request, media_types: Sequence[str]) -> str:
    """Return the media type that Accept prefers, the first among equals; raise Refusal if it accepts none."""
    accept = _accept(request)
    best = max(media_types, key=lambda media_type: _quality(accept, media_type))
    if _quality(accept, best) <= 0:
        raise _not_acceptable(accept, media_types)
    return best


def _not_acceptable(accept: str, media_types: Sequence[str]) -> Refusal:
    return Refusal("not-acceptable", f"expected Accept with {' or '.join(media_types)}, got {accept}")


def _accept(request: Request) -> str:
    """Return the header Accept; raise Refusal if it is unreasonably long."""
    header = ",".join(request.headers.getlist("accept"))
    if len(header) > _MOST_CHARACTERS:
        raise Refusal("not-acceptable", f"Accept has {len(header)} characters; {_MOST_CHARACTERS} are read at most")
    return header if header.strip() else "*/*"


def _families(media_type: str) -> tuple[str, str]:
    return media_type.partition("/")[0] + "/*", "*/*"


def _quality(accept: str, media_type: str, dtype: str | None = None) -> float:
    """Return the weight that Accept gives to a media type, optionally with the array's own dtype.

    The most specific matching range counts (RFC 9110, 12.5.1).
    """
    found = _ranges(accept)
    covering = ((media_type, dtype), (media_type, None), *((family, None) for family in _families(media_type)))
    return next((found[one] for one in covering if one in found), 0.0)


@lru_cache(64)
def _ranges(accept: str) -> dict[tuple[str, str | None], float]:
    """Return the weights in Accept, by media range and its parameter `dtype`; other parameters are ignored."""
    found: dict[tuple[str, str | None], float] = {}
    for entry in _ENTRY.findall(accept.lower()):
        media_range, *parameters = (part.strip() for part in entry.split(";"))
        pairs = [(key.strip(), value.strip()) for key, _, value in (one.partition("=") for one in parameters)]
        try:
            weight = float(dict(pairs).get("q", 1.0))
        except ValueError:
            weight = 0.0
        named = [_DTYPE.fullmatch(value) for key, value in pairs if key == "dtype"]
        # Several dtypes, or mismatched quotes, match no dtype.
        dtype = None if not named else named[0]["word"] if len(named) == 1 and named[0] else ""
        # The comparison also maps "nan" to 0.
        found[media_range, dtype] = weight if 0 <= weight <= 1 else 0.0
    return found


WARNING = "Bochner-Warning"
"""Header with warnings about an answer."""

Piece = bytes | memoryview

# Bytes sent at a time. The client's time limit is for each send, so a slow but steady reader is not given up.
_BYTES_PER_SEND = 1 << 18
# Smaller answers are encoded whole: that is faster than passing pieces from thread to thread.
_WHOLE_BELOW = 1 << 18


def array_response(
    answer: Answer, wanted: Wanted, admission: Admission, warnings: Sequence[str] = (), tag: str = ""
) -> Response:
    """Return a response with arrays in the format and dtype that the client wants, warnings and their ETag.

    A large answer is encoded while it is sent, so it takes little more memory than its arrays; if the arrays are
    computed while they are sent, it takes little more than two blocks. When the client disconnects, the rest is not
    computed. If computing fails, the connection is closed before the answer is complete.

    Raises:
        Refusal: the client accepts no available dtype.
        OutOfRange: numbers are too large for the dtype that the client accepts.
    """
    form, dtype = wanted.choose(dtype_of(answer))
    encoded, headers = form.encode(answer, dtype, warnings), {"Vary": "Accept"} | warning_headers(warnings)
    if tag:
        headers["ETag"] = tag
    return encoded_response(encoded, answer, form.media_type, headers, admission)


def encoded_response(
    encoded: Encoded, answer: Answer, media_type: str, headers: dict[str, str], admission: Admission
) -> Response:
    """Return a response with encoded arrays, whole or in pieces, as `array_response` sends them."""
    is_small = sum(array.nbytes for array in answer.values()) < _WHOLE_BELOW
    if is_small:
        return Response(b"".join(encoded.pieces), headers=headers, media_type=media_type)
    if encoded.nbytes is not None:
        headers["Content-Length"] = str(encoded.nbytes)
    held = Held(held_bytes(answer) + encoded.text_bytes, shared_by(answer))
    if isinstance(encoded.pieces, list):
        return _Ready(encoded.pieces, held, headers, media_type)
    return streamed(encoded.pieces, held, headers, media_type, admission)


def streamed(
    pieces: Iterator[Piece], held: Held, headers: dict[str, str], media_type: str, admission: Admission
) -> StreamingResponse:
    """Return a response of pieces, each made on a thread while the one before is sent.

    It breaks off if what they are made from is deleted meanwhile, or the store fails.
    """
    return _Streamed(_make_pieces(pieces, admission), held, headers, media_type)


def warning_headers(warnings: Sequence[str]) -> dict[str, str]:
    """Return the header with warnings, which are lines of ASCII; empty if there are no warnings."""
    return {WARNING: "; ".join(warnings)} if warnings else {}


class _Ready(Response):
    """Response of existing pieces, sent without a copy. Unlike `StreamingResponse`, it watches for no disconnect."""

    def __init__(self, pieces: list[Piece], held: Held, headers: dict[str, str], media_type: str) -> None:
        super().__init__(headers=headers, media_type=media_type)
        self._pieces, self._held = pieces, held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        scope["state"][HELD] = self._held
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for piece in self._pieces:
            for part in _cut(piece):
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class _Streamed(StreamingResponse):
    """Response of pieces that are made while others are sent; released as soon as the client has disconnected.

    `StreamingResponse` would, after a disconnect, leave exceptions and frames that refer to each other, and so keep the
    last pieces and the request in memory.
    """

    def __init__(self, pieces: AsyncGenerator[Piece], held: Held, headers: dict[str, str], media_type: str) -> None:
        super().__init__(pieces, headers=headers, media_type=media_type)
        self._pieces, self._held = pieces, held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][HELD] = self._held
        gone = asyncio.create_task(hung_up(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self._pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                if gone.done():
                    return
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except ClientDisconnect:
            return  # it has left while a piece waited to be made
        except (Gone, JobNotFound, StoreUnavailable) as error:
            logger.warning("an answer ends before its end: %s", error)
        finally:
            gone.cancel()
            await self._pieces.aclose()


async def _make_pieces(pieces: Iterator[Piece], admission: Admission) -> AsyncGenerator[Piece]:
    """Yield the pieces; each is made on a thread while the previous one is sent."""
    make = partial(admission.compute, partial(next, pieces, None))
    coming = asyncio.create_task(make())
    try:
        while (piece := await coming) is not None:
            coming = asyncio.create_task(make())
            for part in _cut(piece):
                yield part
    finally:
        coming.cancel()
        coming.add_done_callback(retrieve_failure)  # the client may have left while it waited for a thread


def _cut(piece: Piece) -> Iterator[Piece]:
    """Return an iterator over smaller parts of a piece, without a copy."""
    whole = memoryview(piece)
    return (whole[start : start + _BYTES_PER_SEND] for start in range(0, len(whole), _BYTES_PER_SEND))
