"""Which format a request is in, and answers in the format that its client wants."""

from collections.abc import AsyncIterator, Sequence

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from app.api.problems import Refusal
from app.core.arrays import Answer
from app.formats import FORMATS, Format
from app.formats.json import Json

JSON = Json.media_type
# Sent in one piece, so that the rest waits while a client reads slowly.
_BYTES_PER_SEND = 1 << 20
# Smaller answers are encoded whole: that is faster than handing pieces from thread to thread.
_WHOLE_BELOW = 1 << 18


def posted_format(request: Request, allowed: tuple[str, ...] = tuple(FORMATS)) -> Format:
    """The format that Content-Type names; Refusal if it is none of those allowed, or the body is compressed."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise Refusal("unsupported-media-type", f"Content-Encoding {encoding} came; an uncompressed body is wanted")
    header = request.headers.get("content-type")
    media_type = (header or "").partition(";")[0].strip().lower()
    if media_type not in allowed:
        came = f"Content-Type {header}" if header else "no Content-Type"
        raise Refusal("unsupported-media-type", f"{came} came; {' or '.join(allowed)} is wanted")
    return FORMATS[media_type]


def answer_format(request: Request, posted: Format | None = None) -> Format:
    """The format to answer arrays in: what Accept prefers, else that of the request, else JSON; or Refusal."""
    default = posted.media_type if posted else JSON
    return FORMATS[favourite(request, [default, *(other for other in FORMATS if other != default)])]


def favourite(request: Request, media_types: Sequence[str]) -> str:
    """The media type that Accept prefers, the first of several that it likes equally; Refusal if it takes none."""
    header = ",".join(request.headers.getlist("accept"))
    if not header.strip():
        return media_types[0]
    quality = {media_type: _quality(media_type, header) for media_type in media_types}
    best = max(media_types, key=lambda media_type: quality[media_type])
    if quality[best] <= 0:
        raise Refusal("not-acceptable", f"Accept {header} came; {' or '.join(media_types)} can be written")
    return best


def array_response(answer: Answer, form: Format) -> Response:
    """A response with the arrays in a format.

    A large answer is encoded piece by piece while it is sent, so that it takes little more memory than its arrays.
    """
    encoded = form.encode(answer)
    if sum(array.nbytes for array in answer.values()) < _WHOLE_BELOW:
        return Response(b"".join(encoded), media_type=form.media_type)
    if isinstance(encoded, list):
        length = {"Content-Length": str(sum(map(len, encoded)))}
        return StreamingResponse(_pieces(encoded), headers=length, media_type=form.media_type)
    return StreamingResponse(encoded, media_type=form.media_type)


def _quality(media_type: str, header: str) -> float:
    """The weight of a media type in Accept. The most specific range that covers it counts (RFC 9110, 12.5.1)."""
    found = {}
    for entry in header.split(","):
        media_range, *parameters = (part.strip().lower() for part in entry.split(";"))
        given = {key.strip(): value for key, _, value in (one.partition("=") for one in parameters)}
        try:
            weight = float(given.get("q", 1.0))
        except ValueError:
            weight = 0.0
        found[media_range] = weight if 0 <= weight <= 1 else 0.0  # this makes "nan" 0 too
    family = media_type.partition("/")[0] + "/*"
    return next((found[one] for one in (media_type, family, "*/*") if one in found), 0.0)


async def _pieces(buffers: list[bytes | memoryview]) -> AsyncIterator[bytes | memoryview]:
    """The buffers in pieces, none of which is copied."""
    for buffer in buffers:
        for start in range(0, len(buffer), _BYTES_PER_SEND):
            yield memoryview(buffer)[start : start + _BYTES_PER_SEND]
