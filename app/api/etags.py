"""Entity tags: which version of a resource a client has, and which version it means to change (RFC 9110, 13)."""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from fastapi import Request, Response

from app.api.problems import Refusal
from app.api.schemas import headers, taking

_TAG = re.compile(r'(?:W/)?"[^"]*"')


_IF_MATCH = {"If-Match": "ETags, or `*` for any; 412 if what is there has none of them, or if a PUT finds nothing."}
_IF_NONE_MATCH = {"If-None-Match": "ETags of earlier answers; 304 if one is that of what would be sent."}
ASKED_AGAIN = taking(_IF_NONE_MATCH)
"""Request parameters, in the OpenAPI document, of calls whose answers may be cached and revalidated."""
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "`If-None-Match` names what would be sent.", **headers("ETag", "Vary")}
}
"""Answer that calls with `ASKED_AGAIN` may return."""
CONDITIONAL = taking(_IF_MATCH)
"""Request parameters, in the OpenAPI document, of calls that delete subject to `Preconditions`."""


def conditional_put(body: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a PUT with this body that is subject to `Preconditions`."""
    told = "`*`: 412 if something is there. ETags: 412 if what is there has one of them."
    return body | {"parameters": body.get("parameters", []) + taking(_IF_MATCH | {"If-None-Match": told})["parameters"]}


class NotModified(Exception):
    """The client already has the current version, with this tag; `others` are further headers of the answer."""

    def __init__(self, tag: str, others: Mapping[str, str]) -> None:
        super().__init__(tag)
        vary = ", ".join(filter(None, (others.get("Vary"), "Accept-Encoding")))  # as the full answer has it
        self.headers = {"ETag": tag, **others, "Vary": vary}


class Preconditions(NamedTuple):
    """Conditions under which a request may change a resource."""

    match: tuple[str, ...] | None
    """Tags in `If-Match`; None if there is no such header."""
    none_match: tuple[str, ...] | None
    """Tags in `If-None-Match`; None if there is no such header."""

    def check(self, digest: str | None) -> None:
        """Raise Refusal unless the conditions hold for a resource with this digest: "" if it has none yet.

        `digest` is None if there is no resource.
        """
        tag = etag(digest) if digest else ""
        there = "nothing is there" if digest is None else f"what is there has {f'ETag {tag}' if tag else 'no ETag yet'}"
        if self.match is not None and (digest is None or not {tag, "*"} & set(self.match)):
            raise Refusal("precondition-failed", f"If-Match came with {_shown(self.match)}; {there}")
        if self.none_match is not None and digest is not None and ({tag, "*"} & set(map(_strong, self.none_match))):
            raise Refusal("precondition-failed", f"If-None-Match came with {_shown(self.none_match)}; {there}")


def preconditions(request: Request) -> Preconditions:
    """Return the preconditions of a request that changes a resource."""
    return Preconditions(_tags(request, "if-match"), _tags(request, "if-none-match"))


def etag(*parts: str, weak: bool = False) -> str:
    """Return the tag made of the parts that identify a version; weak if its bytes may differ between machines."""
    return f'{"W/" if weak else ""}"{"/".join(parts)}"'


def check_if_none_match(request: Request, tag: str, **others: str) -> None:
    """Raise NotModified if the client of a request already has the version with this tag."""
    for known in _tags(request, "if-none-match") or ():
        if _strong(known) in (_strong(tag), "*"):
            raise NotModified(tag, others)


def not_modified_response(_: Request, same: NotModified) -> Response:
    """Return the answer to a client that already has the current version."""
    return Response(status_code=304, headers=same.headers)


def constant(request: Request, content: bytes, media_type: str) -> Response:
    """Return an answer that is constant for this version of the service; raise NotModified if the client has it."""
    tag = _tag_of(content)
    check_if_none_match(request, tag)
    return Response(content, headers={"ETag": tag}, media_type=media_type)


@lru_cache(8)
def _tag_of(content: bytes) -> str:
    return etag(f"sha256:{hashlib.sha256(content).hexdigest()}")


def _tags(request: Request, header: str) -> tuple[str, ...] | None:
    """Return the tags in a header, or `*`; None if there is no such header."""
    came = request.headers.getlist(header)
    if not came:
        return None
    joined = ",".join(came)
    return ("*",) if joined.strip() == "*" else tuple(_TAG.findall(joined))


def _strong(tag: str) -> str:
    return tag.removeprefix("W/")


def _shown(tags: tuple[str, ...]) -> str:
    return ", ".join(tags)[:200] or "no ETag"
