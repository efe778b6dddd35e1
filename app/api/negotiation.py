"""Which format a request is in, and which format and dtype its client wants the answer in."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from fastapi import Request

from app.api.problems import Refusal
from app.formats import FORMATS, Format
from app.formats.json import Json

JSON = Json.media_type

# Up to a comma that does not stand in quotes; a quote without an end is like any other character.
_ENTRY = re.compile(r'(?:"[^"]*"|[^,])+')
# A header of thousands of entries takes as many steps, and a place in memory.
_MOST_CHARACTERS = 4096
_DTYPE = re.compile(r'(?P<quote>"?)(?P<word>[^"]*)(?P=quote)')


def posted_format(request: Request, allowed: tuple[str, ...] = tuple(FORMATS)) -> Format:
    """The format that Content-Type names; Refusal if it is none of those allowed."""
    return FORMATS[posted_type(request, allowed)]


def posted_type(request: Request, allowed: Collection[str], absent: str = "") -> str:
    """The media type that Content-Type names, `absent` without one; raises what `posted_format` raises."""
    header = request.headers.get("content-type")
    media_type = (header or absent).partition(";")[0].strip().lower()
    if media_type not in allowed:
        came = f"Content-Type {header}" if header else "no Content-Type"
        raise Refusal("unsupported-media-type", f"{came} came; {' or '.join(allowed)} is wanted")
    return media_type


class Wanted(NamedTuple):
    """How a client wants arrays: what `Accept` says, and the formats in the order that counts between equals."""

    accept: str
    forms: tuple[Format, ...]

    def choose(self, dtype: np.dtype[Any]) -> tuple[Format, np.dtype[Any]]:
        """The format and dtype to answer rows of this dtype in: what Accept prefers; Refusal if it takes none.

        Another dtype than that of the rows is for those who name it.
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
        raise Refusal("not-acceptable", f"Accept {accept} came; {' or '.join(written)} can be written")
    return best[0], np.dtype(best[1])


def wanted_format(request: Request, posted: Format | None = None) -> Wanted:
    """How to answer arrays: as Accept says, between equals as they were posted, else in JSON.

    Raises:
        Refusal: Accept takes no format.
    """
    default = posted.media_type if posted else JSON
    media_types = [default, *(other for other in FORMATS if other != default)]
    accept = _accept(request)
    named = {media_range for (media_range, _), weight in _ranges(accept).items() if weight > 0}
    if not any(named & {media_type, *_families(media_type)} for media_type in media_types):
        raise _not_acceptable(accept, media_types)
    return Wanted(accept, tuple(FORMATS[media_type] for media_type in media_types))


def favourite(request: Request, media_types: Sequence[str]) -> str:
    """The media type that Accept prefers, the first of several that it likes equally; Refusal if it takes none."""
    accept = _accept(request)
    best = max(media_types, key=lambda media_type: _quality(accept, media_type))
    if _quality(accept, best) <= 0:
        raise _not_acceptable(accept, media_types)
    return best


def _not_acceptable(accept: str, media_types: Sequence[str]) -> Refusal:
    return Refusal("not-acceptable", f"Accept {accept} came; {' or '.join(media_types)} can be written")


def _accept(request: Request) -> str:
    """The header Accept; Refusal if it is longer than any that makes sense."""
    header = ",".join(request.headers.getlist("accept"))
    if len(header) > _MOST_CHARACTERS:
        detail = f"Accept has {len(header)} characters; {_MOST_CHARACTERS} are read at most"
        raise Refusal("not-acceptable", detail)
    return header if header.strip() else "*/*"


def _families(media_type: str) -> tuple[str, str]:
    return media_type.partition("/")[0] + "/*", "*/*"


def _quality(accept: str, media_type: str, dtype: str | None = None) -> float:
    """The weight that Accept gives a media type, and a dtype that nobody need name.

    The most specific range that covers them counts (RFC 9110, 12.5.1).
    """
    found = _ranges(accept)
    covering = ((media_type, dtype), (media_type, None), *((family, None) for family in _families(media_type)))
    return next((found[one] for one in covering if one in found), 0.0)


@lru_cache(64)
def _ranges(accept: str) -> dict[tuple[str, str | None], float]:
    """The weights in Accept, by media range and its parameter `dtype`; other parameters have no meaning here."""
    found: dict[tuple[str, str | None], float] = {}
    for entry in _ENTRY.findall(accept.lower()):
        media_range, *parameters = (part.strip() for part in entry.split(";"))
        pairs = [(key.strip(), value.strip()) for key, _, value in (one.partition("=") for one in parameters)]
        try:
            weight = float(dict(pairs).get("q", 1.0))
        except ValueError:
            weight = 0.0
        named = [_DTYPE.fullmatch(value) for key, value in pairs if key == "dtype"]
        # Several dtypes, or odd quotes, name none that there is.
        dtype = None if not named else named[0]["word"] if len(named) == 1 and named[0] else ""
        # The comparison makes "nan" 0 too.
        found[media_range, dtype] = weight if 0 <= weight <= 1 else 0.0
    return found
