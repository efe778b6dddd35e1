"""Request bodies: read up to a limit, and parsed into models."""

import asyncio
import json
import sys
import zlib
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES
from starlette.requests import ClientDisconnect

from app.api.admission import Sender
from app.api.context import Context
from app.api.problems import Refusal
from app.core.errors import InvalidInput
from app.core.json_text import check_names, check_options
from app.formats import FORMATS, Body, Buffer, RowsFormat
from app.formats.json import Json
from app.formats.json.body import pointer_to

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

UNCOMPRESSED = (
    *DEFAULT_EXCLUDED_CONTENT_TYPES,
    "application/octet-stream",
    *(media_type for media_type in FORMATS if media_type != Json.media_type),
)
"""Media types that are not compressed: compressing features saves 1/14, and takes longer than computing them."""
_GZIP = 31
"""Code of zlib for the gzip format with its largest window."""
# Largest zstd window, as a power of two: 8 MB, as RFC 9659 requires.
_WINDOW = {int(zstd.DecompressionParameter.window_log_max): 23}
# Bytes decompressed at a time: some milliseconds.
_PART = 1 << 19
# Most separately compressed parts of a body. Each costs some microseconds, and may be empty.
_MOST_FRAMES = 4096
# Decompressors by coding; each receives the beginning of the body. Clients send deflate in zlib's format, as RFC 9110
# requires, or bare; the first byte of bare deflate is never that of zlib's format.
_UNPACKERS: dict[str, Callable[[bytes], Any]] = {
    "gzip": lambda _: zlib.decompressobj(_GZIP),
    "deflate": lambda start: zlib.decompressobj(zlib.MAX_WBITS if start[0] & 15 == zlib.DEFLATED else -zlib.MAX_WBITS),
    "zstd": lambda _: zstd.ZstdDecompressor(options=_WINDOW),
}


class Unpacked:
    """A body that is decompressed while it arrives."""

    def __init__(self, coding: str) -> None:
        self._coding, self._n_frames = coding, 0
        self._unpacker: Any = None

    def parts(self, piece: bytes) -> Iterator[bytes]:
        """Decompress a piece, in parts of bounded size; raise InvalidInput if it is not encoded as declared."""
        try:
            while piece:
                if self._unpacker is None or self._unpacker.eof:
                    self._unpacker = _UNPACKERS[self._coding](piece)
                    self._n_frames += 1
                    if self._n_frames > _MOST_FRAMES:
                        raise InvalidInput(f"the body is {self._coding} of more than {_MOST_FRAMES} parts")
                part = self._unpacker.decompress(piece, _PART)
                yield part
                while len(part) == _PART and not self._unpacker.eof:  # it holds more of the same piece
                    # Input that zlib has not consumed and must be passed again; zstd keeps it itself.
                    rest = getattr(self._unpacker, "unconsumed_tail", b"")
                    part = self._unpacker.decompress(rest, _PART)
                    yield part
                piece = self._unpacker.unused_data
        except (zlib.error, zstd.ZstdError) as error:
            raise InvalidInput(f"the body is not {self._coding}, as Content-Encoding says: {error}") from error

    def check_end(self) -> None:
        """Raise InvalidInput if the compressed data is incomplete."""
        if self._unpacker is None or not self._unpacker.eof:
            raise InvalidInput(f"the body ends before its {self._coding} does")


def choose_decoder(request: Request) -> Unpacked | None:
    """Return the decompressor of a body; None if it is uncompressed. Refusal: another coding, or several."""
    came = ",".join(request.headers.getlist("content-encoding")).strip().lower()
    coding = came.removeprefix("x-")
    if coding in ("", "identity"):
        return None
    if coding not in _UNPACKERS:
        detail = f"expected one Content-Encoding of {', '.join(_UNPACKERS)}, or none, got {came[:80]}"
        raise Refusal("unsupported-media-type", detail, headers={"Accept-Encoding": ", ".join(_UNPACKERS)})
    return Unpacked(coding)


Model = TypeVar("Model", bound=BaseModel)

# Most errors that a refusal names. More would make it longer than the body it refuses.
_MOST_NAMED = 20
# Most errors that are examined, each of which costs a kilobyte. If there are more, they are only counted.
_MOST_LOOKED_AT = 1000
# Most lists and objects inside lists of options that come without rows, which have none.
_MOST_LISTS_OF_OPTIONS = 1 << 10
# Characters repeated of a value or a name from the request.
_MOST_CHARACTERS = 80


async def read(request: Request, context: Context, check_size: Callable[[int], None] | None = None) -> bytearray:
    """Read a whole body into one buffer, decompressed if it is compressed.

    Raises:
        TooLarge: the announced or received length is over the limit of `check_size`, by default that of vectors.
        InvalidInput: the body is not compressed as its header says.
        Refusal: the content encoding is unknown; the client has paused for too long, or is too slow; or no memory is
            left for all bodies.
        ClientDisconnect: the client has disconnected.
    """
    check_size = check_size or context.limits.check_body
    announced = request.headers.get("content-length", "")
    check_size(int(announced[-20:]) if announced.isdecimal() else 0)
    packed = choose_decoder(request)
    body, sent = bytearray(), 0  # it grows as bytes come: an announced length costs nothing
    senders, state = context.admission.senders, request.scope["state"]
    with Sender(senders, context.settings) as sender:
        while True:
            message = await sender.waited_for(request.receive)
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            piece = message.get("body", b"")
            sent += len(piece)
            check_size(sent)  # compressed data may decompress to nothing
            for part in (piece,) if packed is None else packed.parts(piece):
                sender.has_sent(len(part))  # data that decompresses to nothing does not count as speed
                senders.take(state, len(part))
                body += part
                check_size(len(body))
                if packed is not None:  # a little compressed data may expand to much
                    await asyncio.sleep(0)
            if not message.get("more_body", False):
                if packed is not None:
                    packed.check_end()
                return body


async def read_options(request: Request, context: Context) -> bytearray:
    """Read the whole body of a request without rows; raise what `read` and `check_options` raise."""
    check_size = context.limits.check_options
    body = await read(request, context, check_size)
    # A refusal contains what is wrong several times, and a parsed list takes much more memory than its text.
    check_options(body, check_size, _MOST_LISTS_OF_OPTIONS)
    return body


async def read_body(form: RowsFormat, request: Request, context: Context) -> Body:
    """Read a whole body and the headers that its format needs; raise what `read` raises."""
    content, limits = await read(request, context), context.limits
    given = {name: request.headers[name] for name in form.request_headers if name in request.headers}
    return Body(content, given, limits.check_options, limits.check_body, limits.check_rows)


def parse(model: type[Model], body: Buffer) -> Model:
    """Parse a body as a model.

    Raises:
        InvalidInput: the body has a member twice.
        Refusal: the body is not JSON, or does not fit the model; the refusal names the first errors.
    """
    check_names(body)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        count = error.error_count()
        if count > _MOST_LOOKED_AT:
            raise _invalid([("", f"{count} things are wrong with it")]) from error
        found = _told_once(error.errors(include_url=False))[:_MOST_NAMED]
        try:
            document = from_json(body)
        except ValueError:
            document = None
        raise _invalid([(_pointer(one, document), _sentence(one)) for one in found]) from error


def _invalid(errors: list[tuple[str, str]]) -> Refusal:
    """Return a refusal with a JSON pointer and a sentence for each error."""
    detail = "; ".join(f"{pointer or 'body'}: {said}" for pointer, said in errors)
    return Refusal("invalid-input", detail, errors=[{"pointer": pointer, "detail": said} for pointer, said in errors])


def _told_once(errors: list[Any]) -> list[Any]:
    """Return the errors that matter: if an item of a list is invalid, pydantic also reports the list as too short."""
    return [
        error
        for i, error in enumerate(errors)
        if error["type"] != "too_short"
        or not any(inner["loc"][: len(error["loc"])] == error["loc"] != inner["loc"] for inner in errors[:i])
    ]


# What scikit-learn calls kinds and members.
_KINDS = {"rbf": "gaussian", "nystroem": "landmarks", "RBFSampler": "monte_carlo", "Nystroem": "landmarks"}
_MEMBERS = {"n_components": "s", "random_state": "seed"}


def _sentence(error: Any) -> str:
    came, context = error["input"], error.get("ctx", {})
    said = str(error["msg"])
    if error["type"] == "union_tag_invalid":
        tag, kinds = context["tag"][:_MOST_CHARACTERS], context["expected_tags"].replace("'", "").split(", ")
        meant = [kind for kind in (_KINDS.get(tag),) if kind in kinds] or get_close_matches(tag, kinds, 1)
        of = next((step for step in reversed(error["loc"]) if isinstance(step, str)), "kind")
        return f"unknown {of} {tag!r}; {f'did you mean {meant[0]!r}? ' if meant else ''}there are {', '.join(kinds)}"
    if error["type"] == "extra_forbidden" and error["loc"][-1] in _MEMBERS:
        return f"{said}; did you mean {_MEMBERS[error['loc'][-1]]}?"
    if isinstance(came, str | int | float | None) and error["type"] not in ("missing", "json_invalid"):
        # The json module of the standard library also writes infinity and NaN.
        return f"{said}; {json.dumps(came, ensure_ascii=False)[:_MOST_CHARACTERS]} came"
    return said


def _pointer(error: Any, document: Any) -> str:
    """Return the JSON pointer (RFC 6901) of an error, without the steps for unions that pydantic's location has."""
    at_kind = error["type"].startswith("union_tag") and error["ctx"].get("discriminator") == "'kind'"
    location = (*error["loc"], "kind") if at_kind else error["loc"]
    absent = len(location) - 1 if at_kind or error["type"] == "missing" else None
    pointer, at = "", document
    for i, step in enumerate(location):
        in_list = isinstance(at, list) and isinstance(step, int) and step < len(at)
        if in_list or (isinstance(at, dict) and step in at):
            at = at[step]
        elif i != absent:
            continue
        pointer += pointer_to(str(step)[:_MOST_CHARACTERS])
    return pointer
