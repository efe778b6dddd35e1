"""Entity tags: which version of a thing a client has, and which it means to change (RFC 9110, 13)."""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from fastapi import Request, Response

from app.api.problems import Refusal
from app.api.schemas import headers, taking

_TAG = re.compile(r'(?:W/)?"[^"]*"')


_IF_MATCH = {"If-Match": "ETags, or `*` for any; 412 if what is there has none of them, or nothing is there."}
_IF_NONE_MATCH = {"If-None-Match": "ETags of earlier answers; 304 if one is that of what would be sent."}
ASKED_AGAIN = taking(_IF_NONE_MATCH)
"""What the document says of a request whose answers may be kept, and are asked about again before they are used."""
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "`If-None-Match` names what would be sent.", **headers("ETag", "Vary")}
}
"""And of the answer that it may have then."""
CONDITIONAL = taking(_IF_MATCH)
"""Likewise of a request that `Preconditions` are read from, and that deletes."""


def conditional_put(body: dict[str, Any]) -> dict[str, Any]:
    """Likewise of one that puts this body."""
    told = "`*`: 412 if something is there. ETags: 412 if what is there has one of them."
    return body | {"parameters": body["parameters"] + taking(_IF_MATCH | {"If-None-Match": told})["parameters"]}


class NotModified(Exception):
    """The client has what would be sent, of this tag, and with these other headers."""

    def __init__(self, tag: str, others: Mapping[str, str]) -> None:
        super().__init__(tag)
        vary = ", ".join(filter(None, (others.get("Vary"), "Accept-Encoding")))  # the headers of what would be sent
        self.headers = {"ETag": tag, **others, "Vary": vary}


class Preconditions(NamedTuple):
    """What must be so for a request to change something."""

    match: tuple[str, ...] | None
    """Tags in `If-Match`; None where there is no such header."""
    none_match: tuple[str, ...] | None
    """Tags in `If-None-Match`, likewise."""

    def check(self, digest: str | None) -> None:
        """Raise Refusal if they do not hold for a thing of this digest, "" where it has none yet, None for no thing."""
        tag = etag(digest) if digest else ""
        there = "nothing is there" if digest is None else f"what is there has {f'ETag {tag}' if tag else 'no ETag yet'}"
        if self.match is not None and (digest is None or not {tag, "*"} & set(self.match)):
            raise Refusal("precondition-failed", f"If-Match came with {_shown(self.match)}; {there}")
        if self.none_match is not None and digest is not None and ({tag, "*"} & set(map(_strong, self.none_match))):
            raise Refusal("precondition-failed", f"If-None-Match came with {_shown(self.none_match)}; {there}")


def preconditions(request: Request) -> Preconditions:
    """The preconditions of a request that changes something."""
    return Preconditions(_tags(request, "if-match"), _tags(request, "if-none-match"))


def etag(*parts: str, weak: bool = False) -> str:
    """The tag of what these parts tell from all else; weak where its bytes may differ between two machines."""
    return f'{"W/" if weak else ""}"{"/".join(parts)}"'


def check_if_none_match(request: Request, tag: str, **others: str) -> None:
    """Raise NotModified if a client that asks for something has what has this tag already."""
    for known in _tags(request, "if-none-match") or ():
        if _strong(known) in (_strong(tag), "*"):
            raise NotModified(tag, others)


def not_modified_response(_: Request, same: NotModified) -> Response:
    """The answer to a client that has what would be sent."""
    return Response(status_code=304, headers=same.headers)


def constant(request: Request, content: bytes, media_type: str) -> Response:
    """An answer that is the same until another version of the service runs, unless the client has it."""
    tag = _tag_of(content)
    check_if_none_match(request, tag)
    return Response(content, headers={"ETag": tag}, media_type=media_type)


@lru_cache(8)
def _tag_of(content: bytes) -> str:
    return etag(f"sha256:{hashlib.sha256(content).hexdigest()}")


def _tags(request: Request, header: str) -> tuple[str, ...] | None:
    """The tags in a header, or `*`; None where it did not come."""
    came = request.headers.getlist(header)
    if not came:
        return None
    joined = ",".join(came)
    return ("*",) if joined.strip() == "*" else tuple(_TAG.findall(joined))


def _strong(tag: str) -> str:
    return tag.removeprefix("W/")


def _shown(tags: tuple[str, ...]) -> str:
    return ", ".join(tags)[:200] or "no ETag"
