"""Which format a request is in, and which one to answer in."""

from collections.abc import Sequence

from fastapi import Request

from app.api.problems import Refusal
from app.formats import FORMATS, Format

_JSON = "application/json"


def posted_format(request: Request, allowed: tuple[str, ...] = tuple(FORMATS)) -> Format:
    """The format that Content-Type names.

    Raises:
        Refusal: it names none of those that are allowed, or the body is compressed.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        raise Refusal("unsupported-media-type", f"Content-Encoding {encoding} came; an uncompressed body is wanted")
    header = request.headers.get("content-type")
    media_type = (header or "").partition(";")[0].strip().lower()
    if media_type not in allowed:
        came = f"Content-Type {header}" if header else "no Content-Type"
        raise Refusal("unsupported-media-type", f"{came} came; {' or '.join(allowed)} is wanted")
    return FORMATS[media_type]


async def require_json(request: Request) -> None:
    """Raise Refusal unless Content-Type is that of JSON."""
    posted_format(request, (_JSON,))


def answer_format(request: Request, posted: Format | None = None) -> Format:
    """The format to answer arrays in: what Accept prefers, else the format of the request, else JSON.

    Raises:
        Refusal: Accept names no format that can be written.
    """
    default = posted.media_type if posted else _JSON
    return FORMATS[favourite(request, [default, *(other for other in FORMATS if other != default)])]


def favourite(request: Request, media_types: Sequence[str]) -> str:
    """The media type that Accept prefers; the first of several that it likes equally.

    Raises:
        Refusal: Accept names none of them.
    """
    header = ",".join(request.headers.getlist("accept"))
    if not header.strip():
        return media_types[0]
    quality = {media_type: _quality(media_type, header) for media_type in media_types}
    best = max(media_types, key=lambda media_type: quality[media_type])
    if quality[best] <= 0:
        raise Refusal("not-acceptable", f"Accept {header} came; {' or '.join(media_types)} can be written")
    return best


def _quality(media_type: str, header: str) -> float:
    """The weight of a media type in Accept. The most specific range that covers it counts (RFC 9110, 12.5.1)."""
    found = {}
    for entry in header.split(","):
        media_range, *parameters = (part.strip().lower() for part in entry.split(";"))
        weight = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                try:
                    weight = float(value)
                except ValueError:
                    weight = 0.0
                weight = weight if 0 <= weight <= 1 else 0.0  # this makes "nan" 0 too
        found[media_range] = weight
    family = media_type.partition("/")[0] + "/*"
    for media_range in (media_type, family, "*/*"):
        if media_range in found:
            return found[media_range]
    return 0.0
